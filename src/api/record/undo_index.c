/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a git repository (gitformat-index(5)). Each look of git at the files, such as a
 * shell's prompt, may write it anew with the times and inodes that they have now. So two indexes
 * are the same here if they have the same entries apart from that. One in another form than
 * versions 2 and 3 with SHA-1, or with a part elsewhere, is compared as any file. */
#include "api/record/undo.h"
#include "base/fd.h"
#include "workspace/gitindex.h"

#include <fcntl.h>
#include <unistd.h>

enum { UNDO_INDEX_MAX = 16 << 20 };

/* Whether what follows the entries is only for speed: git may leave out what begins with a capital
 * letter. */
static bool undo_index_ends(struct str rest)
{
	while (rest.n >= 8) {
		uint32_t n = gitindex_number(rest, 4);

		if (rest.p[0] < 'A' || rest.p[0] > 'Z' || n > rest.n - 8)
			return false;
		rest = str_from_index(rest, 8 + (size_t)n);
	}
	return rest.n == 0;
}

bool undo_index_is_same(struct str a, struct str b)
{
	struct gitindex_entry i, k;
	struct gitindex x, y;

	if (!gitindex_begin(&x, a) || !gitindex_begin(&y, b) || x.entries != y.entries)
		return false;
	for (uint32_t n = 0; n < x.entries; n++)
		if (!gitindex_next(&x, &i) || !gitindex_next(&y, &k) || !str_eq(i.mode, k.mode) ||
			!str_eq(i.id, k.id) || !str_eq(i.flags, k.flags) || !str_eq(i.name, k.name))
			return false;
	return undo_index_ends(x.rest) && undo_index_ends(y.rest);
}

bool undo_is_index_of(
	const struct cloche_undo *u, const struct undo_look *l, const struct tree_node *n)
{
	_cleanup_(buf_donep) struct buf own = BUF_INIT(UNDO_INDEX_MAX),
					now = BUF_INIT(UNDO_INDEX_MAX);
	_cleanup_fd_ int fd = -1;
	struct stat st;
	char piece[4096];
	ssize_t got;

	if (n->sum || tree_contents(&u->was, n, &own, NULL) != 0)
		return false;
	fd = openat(l->dir, l->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != l->st.st_ino)
		return false;
	while ((got = read(fd, piece, sizeof(piece))) > 0)
		if (buf_add_str(&now, str_make(piece, (size_t)got)) < 0)
			return false;
	return got == 0 && undo_index_is_same(buf_str(&own), buf_str(&now));
}
