/* fuzz-deps: base tls */
/* SPDX-License-Identifier: Apache-2.0 */
/* What a ClientHello may name: whatever the bytes, a name that comes out is made of labels and lies
 * within the input. The first byte chooses the extension. */
#include "tls/hello.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_name(struct str body, struct str name)
{
	require(name.n > 0 && name.n <= HELLO_NAME_MAX);
	require(name.p >= body.p && name.p + name.n <= body.p + body.n);
	require(name.p[0] != '.' && name.p[name.n - 1] != '.');
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		require((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '-' || c == '_' ||
			(c == '.' && name.p[i + 1] != '.'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = str_make(data + 1, size ? size - 1 : 0), name = STR_NULL;

	if (size == 0)
		return 0;
	(void)hello_hides_name(body);
	if (data[0] & 1) {
		(void)hello_alpn_has(body, STR("http/1.1"));
		return 0;
	}
	if (hello_sni_parse(body, &name) == HELLO_SNI_OK)
		check_name(body, name);
	else
		require(name.p == NULL);
	return 0;
}
