/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two indexes of git: what git notes of a file does not count, everything else does. */
#include "api/record/undo.h"
#include "tap.h"

#include <endian.h>

enum { STAT = 0, MODE = 24, OWNER = 28, ID = 40 };

static void put(struct buf *b, const void *p, size_t n)
{
	must(buf_add(b, p, n) == 0);
}

static void put_number(struct buf *b, uint32_t n)
{
	uint32_t be = htobe32(n);

	put(b, &be, sizeof(be));
}

/* An entry in which one byte is another. */
static void put_entry(struct buf *b, const char *name, int at)
{
	char entry[128] = {0};
	size_t n = strlen(name), whole = (62 + n + 8) / 8 * 8;

	memset(entry, 'x', 60);
	entry[61] = (char)n;
	memcpy(entry + 62, name, n);
	if (at >= 0)
		entry[at]++;
	put(b, entry, whole);
}

/* version, the byte of the second entry that differs (-1: none), an extension or NULL. */
static struct buf make(uint32_t version, int at, const char *extension)
{
	struct buf b = BUF_INIT(1000);

	put(&b, "DIRC", 4);
	put_number(&b, version);
	put_number(&b, 2);
	put_entry(&b, "a", -1);
	put_entry(&b, "dir/b", at);
	if (extension) {
		put(&b, extension, 4);
		put_number(&b, 3);
		put(&b, "abc", 3);
	}
	put(&b, "the sum of all this.", 20);
	return b;
}

static bool same(struct buf a, struct buf b)
{
	bool r = undo_index_is_same(buf_str(&a), buf_str(&b));

	buf_done(&a);
	buf_done(&b);
	return r;
}

static void test_what_counts(void)
{
	check(same(make(2, -1, NULL), make(2, -1, NULL)));
	check(same(make(2, STAT, NULL), make(2, -1, "TREE")));
	check(same(make(2, OWNER, NULL), make(3, -1, NULL)));
	check(!same(make(2, MODE, NULL), make(2, -1, NULL)));
	check(!same(make(2, ID, NULL), make(2, -1, NULL)));
	check(!same(make(2, 63, NULL), make(2, -1, NULL)));
	check(!same(make(2, -1, "link"), make(2, -1, "link")));
	check(!same(make(4, -1, NULL), make(4, -1, NULL)));
}

/* One that is cut anywhere, or has any other byte, is no index that is the same by mistake. */
static void test_broken(void)
{
	_cleanup_(buf_donep) struct buf good = make(2, -1, "TREE");
	size_t n = buf_len(&good);

	for (size_t i = 0; i < n; i++) {
		char *part = malloc(i + 1);

		must(part);
		memcpy(part, buf_data(&good), i);
		/* The extension may be missing. */
		check_int(undo_index_is_same(buf_str(&good), str_make(part, i)), i == n - 11);
		free(part);
	}
	for (size_t i = 0; i < n; i++) {
		char *other = malloc(n);

		must(other);
		memcpy(other, buf_data(&good), n);
		for (int bit = 0; bit < 8; bit++) {
			other[i] ^= (char)(1 << bit);
			(void)undo_index_is_same(buf_str(&good), str_make(other, n));
			other[i] ^= (char)(1 << bit);
		}
		other[i] = (char)0xff;
		(void)undo_index_is_same(str_make(other, n), str_make(other, n));
		free(other);
	}
}

int main(void)
{
	run_test(test_what_counts);
	run_test(test_broken);
	return tap_done();
}
