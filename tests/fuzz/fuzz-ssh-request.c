/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the provider for ssh: read without a fault. A script that comes out of it goes
 * through a person's login shell without anything that shells read differently, and a place without
 * anything that one could be made to execute. fuzz-deps: provider_ssh base */
#include "asked/request.h"
#include "remote.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_script(struct str script)
{
	_cleanup_(buf_donep) struct buf command = BUF_INIT(8 * script.n + 64);
	struct str text;

	if (remote_add_command(&command, script) < 0)
		abort();
	text = buf_str(&command);
	for (size_t i = 0, quotes = 0; i < text.n; i++) {
		quotes += text.p[i] == '\'';
		if (text.p[i] < ' ' || text.p[i] > '~' || text.p[i] == '!' ||
			(text.p[i] == '\\' && text.p[i + 1] != '0') || quotes > 2)
			abort();
	}
}

static void check_place(struct str place)
{
	if (remote_is_place(place) && (place.p[0] == '-' || !str_is_visible(place) ||
					      strpbrk(place.p, "'\"\\$`;|&<>()*?#!")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data, size);
	struct request q = {0};
	int r = 0;

	while (rest.n && r == 0)
		r = request_take_line(&q, str_next_line(&rest), NULL);
	if (q.script)
		check_script(str_from(q.script));
	if (q.place)
		check_place(str_from(q.place));
	request_done(&q);
	return 0;
}
