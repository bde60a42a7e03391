/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: files base */
/* Archives from inside a room, as they are written anew for whoever unpacks them: in one piece and
 * byte by byte the same comes out, and what comes out stays below where it is unpacked. */
#include "files/tar_clean.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 4 * 1024 * 1024 };

#define require(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int gather(void *user, const char *p, size_t n, struct files_error *e)
{
	require(n > 0);
	return buf_add(user, p, n);
}

static int clean(const char *root, const char *p, size_t n, size_t piece, struct buf *ret)
{
	_cleanup_(tar_clean_freep) struct tar_clean *c = tar_clean_new(str_from(root), gather, ret);
	struct files_error e = {0};
	int r = 0;

	require(c);
	while (r == 0 && n > 0) {
		size_t some = MIN(n, piece);

		r = tar_clean_feed(c, p, some, &e);
		p += some;
		n -= some;
	}
	return r == 0 ? tar_clean_finish(c, &e) : r;
}

static void require_below(struct str path)
{
	require(path.n > 0 && path.p[0] != '/');
	while (path.n > 0) {
		struct str part = str_prefix(path, str_chr(path, '/'));

		require(!str_eq(part, STR("..")));
		path = str_from_index(path, part.n + 1);
	}
}

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	require_below(entry->path);
	if (entry->type == TAR_HARDLINK)
		require_below(entry->link);
	require(entry->type != TAR_CHAR_DEVICE && entry->type != TAR_BLOCK_DEVICE);
	require((entry->mode & 06000) == 0 && entry->uid == 0 && entry->gid == 0);
	return 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	return 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	return 0;
}

static void require_clean(struct buf *archive)
{
	static const struct tar_reader_ops ops = {on_entry, on_data, on_entry_end};
	struct tar_reader *r = tar_reader_new(&ops, NULL);
	struct files_error e = {0};

	require(r && tar_reader_feed(r, buf_data(archive), buf_len(archive), &e) == 0);
	require(tar_reader_finish(r, &e) == 0);
	tar_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const roots[] = {".", "a"};

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		_cleanup_(buf_donep) struct buf whole = BUF_INIT(MAX_KEPT);
		_cleanup_(buf_donep) struct buf bits = BUF_INIT(MAX_KEPT);
		int r = clean(roots[i], (const char *)data, size, size ? size : 1, &whole);

		require(clean(roots[i], (const char *)data, size, 1, &bits) == r);
		if (r < 0)
			continue;
		require(str_eq(buf_str(&whole), buf_str(&bits)));
		require_clean(&whole);
	}
	return 0;
}
