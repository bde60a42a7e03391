/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http llhttp */
/* Nobody ever sees a request that we did not judge: each message of a connection that we accept is
 * the same to another parser, llhttp in its strict mode, and ends where we say, so that the next
 * one begins there for both. If we refuse, nothing is claimed. What may differ, and why, is
 * listed in http/testing-llhttp.h. The first byte of the input says what it is: bit 0 responses,
 * bit 1 to HEAD, bit 2 an upgrade was asked for. Without llhttp's source this target does nothing.
 */
#include "fuzz-h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef HAVE_LLHTTP
#include "http/testing-llhttp.h"

#include <stdio.h>

static void compare(struct str in, bool request, unsigned opt)
{
	bool keep_alive = true;

	while (in.n && keep_alive) {
		const char *what = "";
		size_t end = 0;
		enum llhttp_verdict v = llhttp_compare(in, request, opt, &end, &keep_alive, &what);

		if (v == LLHTTP_DIFFERS)
			fprintf(stderr, "llhttp differs in: %s\n", what);
		require(v != LLHTTP_DIFFERS);
		if (v != LLHTTP_SAME_MESSAGE)
			return;
		require(end > 0 && end <= in.n);
		in = str_from_index(in, end);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned opt = 0;

	if (!size)
		return 0;
	if (data[0] & 2)
		opt |= H1_TO_HEAD;
	if (data[0] & 4)
		opt |= H1_UPGRADE_ASKED;
	compare(str_make((const char *)data + 1, size - 1), !(data[0] & 1), data[0] & 1 ? opt : 0);
	return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return 0;
}
#endif
