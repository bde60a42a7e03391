/* SPDX-License-Identifier: Apache-2.0 */
/* The archive around an image: an OCI layout, or the output of `docker save` and `podman save`. Its
 * names are not used as paths here: files are numbered, and the caller finds the names in the
 * list. */
#include "base/fd.h"
#include "image/document.h"
#include "image/unpack.h"
#include "unpack/unpack.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether name has only characters that such archives use. No blank: it separates the list's
 * fields. */
static bool is_plain(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-/:@+";

	return strlen(name) <= IMAGE_PATH_MAX && name[strspn(name, allowed)] == '\0';
}

static int write_file(const struct stream *s, struct archive *tar, int dir, unsigned number,
	const char *path, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	char name[16];
	uint64_t size = 0;

	snprintf(name, sizeof(name), "%u", number);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "create %s", path);
	for (;;) {
		const void *p;
		size_t n;
		int64_t offset;
		int r = archive_read_data_block(tar, &p, &n, &offset);

		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN)
			return stream_error(s, tar, path, err);
		/* Such archives have no sparse files. */
		if (offset != (int64_t)size)
			return err_set(err, E_CORRUPT, "%s: it is a sparse file", path);
		r = fd_write_all(fd, p, n);
		if (r == -ENOSPC || r == -EDQUOT)
			return err_set(err, E_NO_SPACE, "write %s: %s", path, err_errno_text(-r));
		if (r < 0)
			return err_sys(err, -r, "write %s", path);
		size += n;
	}
	printf("file %u %llu %s\n", number, (unsigned long long)size, path);
	return 0;
}

static int take_entry(const struct stream *s, struct archive *tar, struct archive_entry *entry,
	int dir, unsigned *number, struct cloche_err *err)
{
	const char *path = archive_entry_pathname(entry), *target;
	char clean[PATH_MAX];
	int r;

	if (!path)
		return err_set(err, E_CORRUPT, "an entry has no name that can be read");
	r = unpack_path(path, clean, err);
	if (r < 0 || !*clean)
		return r;
	if (!is_plain(clean))
		return 0;
	target = archive_entry_hardlink(entry);
	if (!target && archive_entry_filetype(entry) == AE_IFLNK)
		target = archive_entry_symlink(entry);
	if (target) {
		if (*target && is_plain(target))
			printf("%s %s %s\n", archive_entry_hardlink(entry) ? "hard" : "soft",
				target, clean);
		return 0;
	}
	if (archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	if (*number == UNPACK_FILES_MAX)
		return err_set(err, E_LIMIT, "it has more than %d files", UNPACK_FILES_MAX);
	return write_file(s, tar, dir, (*number)++, clean, err);
}

int unpack_files(int fd, int dir, uint64_t max, struct cloche_err *err)
{
	struct archive_entry *entry;
	struct archive *tar = NULL;
	struct stream s;
	unsigned number = 0;
	uint64_t entries = 0;
	int r = stream_open(&s, fd, max, &tar, err);

	while (r == 0) {
		int got = archive_read_next_header(tar, &entry);

		if (got == ARCHIVE_EOF)
			break;
		if (got < ARCHIVE_WARN)
			r = stream_error(&s, tar, "", err);
		else if (++entries > UNPACK_ENTRIES_MAX)
			r = err_set(err, E_LIMIT, "it has too many entries");
		else
			r = take_entry(&s, tar, entry, dir, &number, err);
	}
	if (r == 0)
		r = stream_drain(&s, err);
	stream_close(&s, tar);
	return r;
}
