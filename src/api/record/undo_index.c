/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a git repository (gitformat-index(5)). Each look of git at the files, such as a
 * shell's prompt, may write it anew with the times and inodes that they have now. So two indexes
 * are the same here if they have the same entries apart from that. One in another form than
 * versions 2 and 3 with SHA-1, or with a part elsewhere, is compared as any file. */
#include "api/record/undo.h"
#include "base/fd.h"

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	UNDO_INDEX_MAX = 16 << 20,
	UNDO_INDEX_HEAD = 12,
	UNDO_INDEX_FACTS = 62, /* of an entry, before its name */
	UNDO_INDEX_MODE = 24,
	UNDO_INDEX_ID = 40,
	UNDO_INDEX_FLAGS = 60,
	UNDO_INDEX_SUM = 20, /* at the end */
};

struct undo_index {
	struct str rest;
	uint32_t version, entries;
};

/* An entry: what counts of it. */
struct undo_index_entry {
	struct str mode, id, name; /* id: with the flags */
};

static uint32_t undo_index_number(struct str text, size_t at)
{
	uint32_t n;

	memcpy(&n, text.p + at, sizeof(n));
	return be32toh(n);
}

static bool undo_index_begin(struct undo_index *x, struct str text)
{
	if (text.n < UNDO_INDEX_HEAD + UNDO_INDEX_SUM || !str_starts(text, STR("DIRC")))
		return false;
	*x = (struct undo_index){
		.rest = str_from_index(str_prefix(text, text.n - UNDO_INDEX_SUM), UNDO_INDEX_HEAD),
		.version = undo_index_number(text, 4),
		.entries = undo_index_number(text, 8)};
	return x->version == 2 || x->version == 3;
}

static bool undo_index_next(struct undo_index *x, struct undo_index_entry *ret)
{
	enum { IS_LONG = 0x4000, NAME = 0xfff };
	struct str s = x->rest;
	size_t at = UNDO_INDEX_FACTS, name, whole;
	unsigned flags;

	if (s.n < UNDO_INDEX_FACTS)
		return false;
	flags = (unsigned)(uint8_t)s.p[UNDO_INDEX_FLAGS] << 8 | (uint8_t)s.p[UNDO_INDEX_FLAGS + 1];
	if (flags & IS_LONG)
		at += 2;
	if ((flags & IS_LONG && x->version < 3) || at > s.n)
		return false;
	name = str_chr(str_from_index(s, at), '\0');
	whole = (at + name + 8) / 8 * 8;
	if (whole > s.n || (name < NAME ? name != (flags & NAME) : (flags & NAME) != NAME))
		return false;
	*ret = (struct undo_index_entry){.mode = str_prefix(str_from_index(s, UNDO_INDEX_MODE), 4),
		.id = str_prefix(str_from_index(s, UNDO_INDEX_ID), at - UNDO_INDEX_ID),
		.name = str_prefix(str_from_index(s, at), name)};
	x->rest = str_from_index(s, whole);
	return true;
}

/* Whether what follows the entries is only for speed: git may leave out what begins with a capital
 * letter. */
static bool undo_index_ends(struct str rest)
{
	while (rest.n >= 8) {
		uint32_t n = undo_index_number(rest, 4);

		if (rest.p[0] < 'A' || rest.p[0] > 'Z' || n > rest.n - 8)
			return false;
		rest = str_from_index(rest, 8 + (size_t)n);
	}
	return rest.n == 0;
}

bool undo_index_is_same(struct str a, struct str b)
{
	struct undo_index_entry i, k;
	struct undo_index x, y;

	if (!undo_index_begin(&x, a) || !undo_index_begin(&y, b) || x.entries != y.entries)
		return false;
	for (uint32_t n = 0; n < x.entries; n++)
		if (!undo_index_next(&x, &i) || !undo_index_next(&y, &k) ||
			!str_eq(i.mode, k.mode) || !str_eq(i.id, k.id) || !str_eq(i.name, k.name))
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
