/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/gitindex.h"
#include "base/sha1.h"

#include <endian.h>
#include <string.h>

enum {
	GITINDEX_HEAD = 12,
	GITINDEX_FACTS = 62, /* of an entry, before its name */
	GITINDEX_MODE = 24,
	GITINDEX_ID = 40,
	GITINDEX_FLAGS = GITINDEX_ID + SHA1_BYTES,
	GITINDEX_SUM = SHA1_BYTES, /* at the end */
};

uint32_t gitindex_number(struct str text, size_t at)
{
	uint32_t n;

	memcpy(&n, text.p + at, sizeof(n));
	return be32toh(n);
}

bool gitindex_begin(struct gitindex *x, struct str text)
{
	if (text.n < GITINDEX_HEAD + GITINDEX_SUM || !str_starts(text, STR("DIRC")))
		return false;
	*x = (struct gitindex){
		.rest = str_from_index(str_prefix(text, text.n - GITINDEX_SUM), GITINDEX_HEAD),
		.version = gitindex_number(text, 4),
		.entries = gitindex_number(text, 8)};
	return x->version == 2 || x->version == 3;
}

bool gitindex_next(struct gitindex *x, struct gitindex_entry *ret)
{
	enum { IS_LONG = 0x4000, NAME = 0xfff };
	struct str s = x->rest;
	size_t at = GITINDEX_FACTS, name, whole;
	unsigned flags;

	if (s.n < GITINDEX_FACTS)
		return false;
	flags = (unsigned)(uint8_t)s.p[GITINDEX_FLAGS] << 8 | (uint8_t)s.p[GITINDEX_FLAGS + 1];
	if (flags & IS_LONG)
		at += 2;
	if ((flags & IS_LONG && x->version < 3) || at > s.n)
		return false;
	name = str_chr(str_from_index(s, at), '\0');
	whole = (at + name + 8) / 8 * 8;
	if (whole > s.n || (name < NAME ? name != (flags & NAME) : (flags & NAME) != NAME))
		return false;
	*ret = (struct gitindex_entry){.mode = str_prefix(str_from_index(s, GITINDEX_MODE), 4),
		.id = str_prefix(str_from_index(s, GITINDEX_ID), SHA1_BYTES),
		.flags = str_prefix(str_from_index(s, GITINDEX_FLAGS), at - GITINDEX_FLAGS),
		.name = str_prefix(str_from_index(s, at), name)};
	x->rest = str_from_index(s, whole);
	return true;
}
