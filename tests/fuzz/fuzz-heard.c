/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: workspace base */
/* What a room prints is looked through for the names of protected files. The first byte says in
 * pieces of which length it comes: that makes no difference to what is heard. */
#include "base/macro.h"
#include "workspace/heard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void listen(struct buf *ret, const char *p, size_t n, size_t piece)
{
	struct heard h = {0};

	*ret = (struct buf)BUF_INIT(64 * 1024);
	if (heard_add(&h, ".envrc", "/h/.envrc", "/workspace/.envrc") < 0 ||
		heard_add(&h, "a", "/h/a", NULL) < 0 ||
		heard_add(&h, ".git/hooks", "/h/.git/hooks", NULL) < 0)
		abort();
	for (size_t i = 0; i < n; i += piece)
		heard_feed(&h, p + i, MIN(piece, n - i));
	if (heard_tell(&h, ret) < 0 || !buf_cstr(ret))
		abort();
	heard_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, pieces;

	if (size == 0)
		return 0;
	listen(&whole, (const char *)data + 1, size - 1, size);
	listen(&pieces, (const char *)data + 1, size - 1, (size_t)data[0] + 1);
	if (strcmp(buf_cstr(&whole), buf_cstr(&pieces)) != 0)
		abort();
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
