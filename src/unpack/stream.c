/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: two readers of libarchive, one behind the other. The first only
 * decompresses, so that its output can be digested and counted before the second reads it as tar. A
 * stream that expands far more than normal files do is treated as a bomb. */
#include "unpack/unpack.h"

#include <archive_entry.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };
/* A stream longer than BOMB_BYTES may expand at most BOMB_RATIO times. */
#define BOMB_BYTES (256ULL << 20)
#define BOMB_RATIO 100
#define TELL_BYTES (16ULL << 20)

static int stream_take(struct stream *s, const void *p, size_t n)
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
static ssize_t stream_next_block(struct stream *s, const void **ret)
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
	return stream_take(s, *ret, n) < 0 ? -1 : (ssize_t)n;
}

static ssize_t stream_read_block(struct archive *tar, void *user, const void **ret)
{
	struct stream *s = user;
	ssize_t n = stream_next_block(s, ret);

	if (n < 0)
		archive_set_error(tar, ARCHIVE_FATAL, "its data cannot be read");
	return n < 0 ? ARCHIVE_FATAL : n;
}

static int stream_open(struct stream *s, int fd)
{
	struct archive_entry *entry;
	int r;

	s->raw = archive_read_new();
	s->tar = archive_read_new();
	if (!s->raw || !s->tar)
		return err_nomem(s->err);
	if (archive_read_support_filter_gzip(s->raw) < ARCHIVE_WARN ||
		archive_read_support_filter_zstd(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_raw(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_empty(s->raw) < ARCHIVE_WARN ||
		archive_read_support_format_tar(s->tar) < ARCHIVE_WARN ||
		archive_read_support_format_empty(s->tar) < ARCHIVE_WARN)
		return err_set(s->err, E_INTERNAL, "libarchive cannot read tar, gzip or zstd");
	r = archive_read_open_fd(s->raw, fd, BLOCK);
	if (r >= ARCHIVE_WARN)
		r = archive_read_next_header(s->raw, &entry);
	if (r < ARCHIVE_WARN)
		return err_set(s->err, E_CORRUPT, "%s", archive_error_string(s->raw));
	if (r == ARCHIVE_EOF)
		return err_set(s->err, E_CORRUPT, "it is empty");
	if (archive_read_open(s->tar, s, NULL, stream_read_block, NULL) < ARCHIVE_WARN)
		return stream_error(s, "", s->err);
	return 0;
}

int unpack_path(const char *path, char *ret, struct cloche_err *err)
{
	struct str rest = str_from(path);
	size_t n = 0, depth = 0;

	if (path[0] == '/')
		return err_set(err, E_CORRUPT, "%.200s: the path is absolute", path);
	while (rest.n) {
		struct str part = str_next(&rest, '/');

		if (part.n == 0 || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR("..")))
			return err_set(err, E_CORRUPT, "%.200s: the path leads up", path);
		if (++depth > UNPACK_DEPTH_MAX || part.n > NAME_MAX || n + part.n + 2 > PATH_MAX)
			return err_set(err, E_CORRUPT, "%.200s...: the path is too long", path);
		if (n > 0)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = '\0';
	return 0;
}

static int stream_take_entry(
	struct stream *s, struct archive_entry *entry, stream_entry_fn fn, void *user)
{
	const char *named = archive_entry_pathname(entry);
	char path[PATH_MAX];
	int r;

	if (++s->entries > UNPACK_ENTRIES_MAX)
		return err_set(s->err, E_LIMIT, "it has more than %d entries", UNPACK_ENTRIES_MAX);
	if (!named)
		return err_set(s->err, E_CORRUPT, "an entry has no name that can be read");
	r = unpack_path(named, path, s->err);
	return r < 0 ? r : fn(user, entry, path, s->err);
}

int stream_each(struct stream *s, int fd, uint64_t max, stream_entry_fn fn, void *user,
	struct cloche_err *err)
{
	struct archive_entry *entry;
	const void *rest;
	ssize_t n;
	int r;

	*s = (struct stream){.max = max, .err = err};
	sha256_init(&s->digest);
	r = stream_open(s, fd);
	while (r == 0) {
		int got = archive_read_next_header(s->tar, &entry);

		if (got == ARCHIVE_EOF)
			break;
		r = got < ARCHIVE_WARN ? stream_error(s, "", err)
				       : stream_take_entry(s, entry, fn, user);
	}
	if (r < 0)
		return r;
	do
		n = stream_next_block(s, &rest);
	while (n > 0);
	return n < 0 ? -err->code : 0;
}

void stream_close(struct stream *s)
{
	archive_read_free(s->tar);
	archive_read_free(s->raw);
	s->raw = s->tar = NULL;
}

int stream_error(const struct stream *s, const char *what, struct cloche_err *err)
{
	/* An error of the first reader is the real reason. */
	if (s->err->code == 0)
		err_set(err, E_CORRUPT, "%s", archive_error_string(s->tar));
	return *what ? err_wrap(err, -err->code, "%s", what) : -err->code;
}
