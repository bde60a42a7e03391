/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: files base */
/* Archives from inside a room, as the host's side reads them: in one piece and byte by byte the
 * reader must say the same, keep its promises about what it tells, and what it told must come back
 * the same when it is written and read again. */
#include "files/tar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 1024 * 1024 };

#define require(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
	struct buf again; /* what was told, written anew */
	uint64_t left;
	uint64_t entries, bytes;
	bool open, full;
};

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct told *t = user;

	require(!t->open);
	require(entry->path.n > 0 && entry->path.n <= TAR_MAX_NAME);
	require(str_chr(entry->path, '\0') == entry->path.n);
	require(str_chr(entry->link, '\0') == entry->link.n);
	require(entry->mode <= 07777 && entry->mtime_nsec < 1000000000);
	require(entry->type == TAR_FILE || entry->size == 0);
	require(entry->size <= INT64_MAX);
	t->open = true;
	t->left = entry->size;
	t->entries++;
	if (!t->full && tar_write_entry(&t->again, entry) < 0)
		t->full = true;
	return 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct told *t = user;

	require(t->open && n > 0 && n <= t->left);
	t->left -= n;
	t->bytes += n;
	if (!t->full && buf_add(&t->again, p, n) < 0)
		t->full = true;
	return 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	struct told *t = user;

	require(t->open && t->left == 0);
	t->open = false;
	/* Up to a whole block. */
	if (!t->full && tar_write_padding(&t->again, buf_len(&t->again)) < 0)
		t->full = true;
	return 0;
}

static int read_all(struct told *t, const char *p, size_t n, size_t piece)
{
	static const struct tar_reader_ops ops = {on_entry, on_data, on_entry_end};
	struct tar_reader *r = tar_reader_new(&ops, t);
	struct files_error e = {0};
	int ret = 0;

	require(r);
	*t = (struct told){.again = BUF_INIT(MAX_KEPT)};
	while (ret == 0 && n > 0) {
		size_t some = MIN(n, piece);

		ret = tar_reader_feed(r, p, some, &e);
		p += some;
		n -= some;
	}
	if (ret == 0)
		ret = tar_reader_finish(r, &e);
	require(ret == -e.sys_errno);
	tar_reader_free(r);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told whole, bits, again;
	int r = read_all(&whole, (const char *)data, size, size ? size : 1);

	require(read_all(&bits, (const char *)data, size, 1) == r);
	require(bits.entries == whole.entries && bits.bytes == whole.bytes);
	require(str_eq(buf_str(&bits.again), buf_str(&whole.again)));
	if (r == 0 && !whole.full && tar_write_end(&whole.again) == 0) {
		require(read_all(&again, buf_data(&whole.again), buf_len(&whole.again), 500) == 0);
		require(again.entries == whole.entries && again.bytes == whole.bytes);
		require(again.full ||
			str_eq(buf_str(&again.again),
				str_prefix(buf_str(&whole.again), buf_len(&again.again))));
		buf_done(&again.again);
	}
	buf_done(&whole.again);
	buf_done(&bits.again);
	return 0;
}
