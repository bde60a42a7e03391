/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: workspace base */
/* What a room made of a configuration of git: three texts with 0xff between them (before, the
 * room's, the host's now). What is taken over runs nothing, can be read behind what is there, and
 * is said in plain letters; a copy that nobody changed changes nothing. */
#include "workspace/carry.h"
#include "workspace/gitconfig.h"

#include <errno.h>
#include <stdlib.h>

#define require(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str take(struct str *rest)
{
	size_t n = str_chr(*rest, '\xff');
	struct str part = str_prefix(*rest, n);

	*rest = str_from_index(*rest, n < rest->n ? n + 1 : n);
	return part;
}

static bool is_plain(const struct buf *b)
{
	for (size_t i = 0; i < buf_len(b); i++)
		if (buf_data(b)[i] < ' ' || buf_data(b)[i] > '~')
			return false;
	return true;
}

static void judge(struct str before, struct str room, struct str now)
{
	_cleanup_(buf_donep) struct buf add = BUF_INIT(1 << 22), said = BUF_INIT(1 << 22),
					refused = BUF_INIT(1 << 22), whole = BUF_INIT(1 << 22);
	struct gitconfig_list a, b, all;
	int r = carry_judge(before, room, now, "/hooks/", &add, &said, &refused);

	require(r == 0 || r == -EINVAL || r == -ESTALE);
	require(is_plain(&said) && is_plain(&refused));
	require(gitconfig_is_harmless(buf_str(&add), NULL, NULL));
	if (r < 0)
		return;
	if (str_eq(before, room))
		require(buf_len(&add) == 0);
	require(gitconfig_read(now, &a) == 0 && gitconfig_read(buf_str(&add), &b) == 0);
	require(buf_add_str(&whole, now) == 0 && buf_add_str(&whole, STR("\n\n")) == 0);
	require(buf_add_str(&whole, buf_str(&add)) == 0);
	r = gitconfig_read(buf_str(&whole), &all);
	require((r == 0 && all.n == a.n + b.n) || r == -E2BIG);
	gitconfig_list_done(&a);
	gitconfig_list_done(&b);
	gitconfig_list_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data, size);
	struct str before = take(&rest), room = take(&rest), now = take(&rest);

	judge(before, room, now);
	judge(before, before, now);
	judge(STR(""), room, STR(""));
	return 0;
}
