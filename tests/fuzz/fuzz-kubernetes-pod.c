/* SPDX-License-Identifier: Apache-2.0 */
/* What kubectl says of pods, one object behind the other, and a person's pod template: read without
 * a fault. What is shown of it is printable, and a template that is taken changes nothing that is
 * ours. fuzz-deps: provider_kubernetes base */
#include "podspec.h"
#include "podstate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_state(const json_t *pod)
{
	struct podstate s;

	podstate_read(pod, &s);
	if (strlen(s.why) > PODSTATE_WHY_MAX || (s.kind != PODSTATE_RUNS && !s.why[0]))
		abort();
	for (const char *c = s.why; *c; c++)
		if (*c < ' ' || *c > '~')
			abort();
}

static void check_template(const json_t *template)
{
	char id[] = "sandbox-1";
	const struct request q = {.id = id};
	_cleanup_json_ json_t *pod = NULL, *plain = NULL;
	const json_t *spec, *one;

	if (podspec_check_template(template, "t", NULL) < 0)
		return;
	pod = podspec_make(&q, template, NULL);
	plain = podspec_make(&q, NULL, NULL);
	spec = json_object_get(pod, "spec");
	one = json_array_get(json_object_get(spec, "containers"), 0);
	if (pod && (json_object_size(pod) != json_object_size(plain) ||
			   json_object_get(spec, "hostNetwork") != json_false() ||
			   json_array_size(json_object_get(spec, "containers")) != 1 ||
			   json_object_get(json_object_get(one, "securityContext"), "privileged") !=
				   json_false()))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(TEXT_MAX);
	struct str one;

	if (buf_add(&text, data, size) < 0)
		return 0;
	while (podstate_take(&text, &one)) {
		_cleanup_json_ json_t *value = NULL;

		if (json_text_read(one, 0, &value, NULL) < 0)
			continue;
		check_state(value);
		check_template(value);
	}
	return 0;
}
