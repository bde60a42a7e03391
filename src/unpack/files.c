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

struct unpacking {
	struct stream stream;
	int dir;
	unsigned number; /* of the next file */
};

static int write_file(struct unpacking *u, const char *path, struct cloche_err *err)
{
	unsigned number = u->number++;
	_cleanup_fd_ int fd = -1;
	char name[16];
	uint64_t size = 0;

	snprintf(name, sizeof(name), "%u", number);
	fd = openat(u->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "create %s", path);
	for (;;) {
		const void *p;
		size_t n;
		int64_t offset;
		int r = archive_read_data_block(u->stream.tar, &p, &n, &offset);

		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN)
			return stream_error(&u->stream, path, err);
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

static int files_take_entry(
	void *user, struct archive_entry *entry, char *path, struct cloche_err *err)
{
	struct unpacking *u = user;
	const char *target;

	if (!*path || !is_plain(path))
		return 0;
	target = archive_entry_hardlink(entry);
	if (!target && archive_entry_filetype(entry) == AE_IFLNK)
		target = archive_entry_symlink(entry);
	if (target) {
		if (*target && is_plain(target))
			printf("%s %s %s\n", archive_entry_hardlink(entry) ? "hard" : "soft",
				target, path);
		return 0;
	}
	if (archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	if (u->number == UNPACK_FILES_MAX)
		return err_set(err, E_LIMIT, "it has more than %d files", UNPACK_FILES_MAX);
	return write_file(u, path, err);
}

int unpack_files(int fd, int dir, uint64_t max, struct cloche_err *err)
{
	struct unpacking u = {.dir = dir};
	int r = stream_each(&u.stream, fd, max, files_take_entry, &u, err);

	stream_close(&u.stream);
	return r;
}
