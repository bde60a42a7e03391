/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: two readers of libarchive, one behind the other. The first only
 * decompresses, so that its output can be digested and counted before the second reads it as tar. A
 * stream that expands far more than normal files do is treated as a bomb. */
#include "unpack/unpack.h"

#include <stdio.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };
/* A stream longer than BOMB_BYTES may expand at most BOMB_RATIO times. */
#define BOMB_BYTES (256ULL << 20)
#define BOMB_RATIO 100
#define TELL_BYTES (16ULL << 20)

static int take(struct stream *s, const void *p, size_t n)
{
	int64_t in = archive_filter_bytes(s->raw, -1);

	s->bytes += n;
	if (s->bytes > s->max)
		return err_set(s->err, E_LIMIT, "it holds more than %llu bytes",
			(unsigned long long)s->max);
	if (s->bytes > BOMB_BYTES && in > 0 && s->bytes / BOMB_RATIO > (uint64_t)in)
		return err_set(s->err, E_LIMIT,
			"it grows to more than %d times its size: this is no archive of files",
			BOMB_RATIO);
	sha256_add(&s->digest, str_make(p, n));
	if (s->bytes - s->told >= TELL_BYTES) {
		s->told = s->bytes;
		printf("progress %llu\n", (unsigned long long)s->bytes);
		(void)fflush(stdout);
	}
	return 0;
}

/* Read the next block that is not empty. Return 0 at the end, or a negative value with s->err
 * set. */
static ssize_t next_block(struct stream *s, const void **ret)
{
	int64_t offset;
	size_t n = 0;

	do {
		int r = archive_read_data_block(s->raw, ret, &n, &offset);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r < ARCHIVE_WARN)
			return err_set(s->err, E_CORRUPT, "%s", archive_error_string(s->raw));
	} while (n == 0);
	return take(s, *ret, n) < 0 ? -1 : (ssize_t)n;
}

static ssize_t read_block(struct archive *tar, void *user, const void **ret)
{
	struct stream *s = user;
	ssize_t n = next_block(s, ret);

	if (n < 0)
		archive_set_error(tar, ARCHIVE_FATAL, "its data cannot be read");
	return n < 0 ? ARCHIVE_FATAL : n;
}

int stream_open(
	struct stream *s, int fd, uint64_t max, struct archive **ret, struct cloche_err *err)
{
	struct archive_entry *entry;
	struct archive *tar;
	int r;

	*s = (struct stream){.raw = archive_read_new(), .max = max, .err = err};
	sha256_init(&s->digest);
	*ret = tar = archive_read_new();
	if (!s->raw || !tar)
		return err_nomem(err);
	if (archive_read_support_filter_gzip(s->raw) < ARCHIVE_WARN ||
		archive_read_support_filter_zstd(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_raw(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_empty(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_tar(tar) < ARCHIVE_WARN ||
		archive_read_support_format_empty(tar) < ARCHIVE_WARN)
		return err_set(err, E_INTERNAL, "libarchive cannot read tar, gzip or zstd");
	r = archive_read_open_fd(s->raw, fd, BLOCK);
	if (r >= ARCHIVE_WARN)
		r = archive_read_next_header(s->raw, &entry);
	if (r < ARCHIVE_WARN)
		return err_set(err, E_CORRUPT, "%s", archive_error_string(s->raw));
	if (r == ARCHIVE_EOF)
		return err_set(err, E_CORRUPT, "it is empty");
	if (archive_read_open(tar, s, NULL, read_block, NULL) < ARCHIVE_WARN)
		return stream_error(s, tar, "", err);
	return 0;
}

int stream_drain(struct stream *s, struct cloche_err *err)
{
	const void *p;
	ssize_t n;

	do
		n = next_block(s, &p);
	while (n > 0);
	return n < 0 ? -s->err->code : 0;
}

void stream_close(struct stream *s, struct archive *tar)
{
	archive_read_free(tar);
	archive_read_free(s->raw);
	s->raw = NULL;
}

int stream_error(
	const struct stream *s, struct archive *tar, const char *what, struct cloche_err *err)
{
	/* An error of the first reader is the real reason. */
	if (s->err->code == 0)
		err_set(err, E_CORRUPT, "%s", archive_error_string(tar));
	return *what ? err_wrap(err, -err->code, "%s", what) : -err->code;
}
