/* SPDX-License-Identifier: Apache-2.0 */
/* The format is ustar, with pax headers only for what it cannot hold: files of 8 GiB or more. */
#include "base/fd.h"
#include "unpack/unpack.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int pack_failed(struct archive *tar, struct cloche_err *err)
{
	return err_set(err, E_SYSTEM, "write the archive: %s", archive_error_string(tar));
}

static int add_file(
	struct archive *tar, int dir, const char *path, const char *name, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct archive_entry *entry;
	static char chunk[256 << 10];
	struct stat st;
	uint64_t left;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_sys(err, fd < 0 ? errno : EINVAL, "open %s", name);
	entry = archive_entry_new();
	if (!entry)
		return err_nomem(err);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_size(entry, st.st_size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_uid(entry, geteuid());
	archive_entry_set_gid(entry, getegid());
	if (archive_write_header(tar, entry) < ARCHIVE_WARN)
		r = pack_failed(tar, err);
	for (left = (uint64_t)st.st_size; r == 0 && left > 0;) {
		ssize_t n = read(fd, chunk, MIN(left, (uint64_t)sizeof(chunk)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			r = err_sys(err, n < 0 ? errno : EIO, "read %s", name);
		else if (archive_write_data(tar, chunk, (size_t)n) != n)
			r = pack_failed(tar, err);
		else
			left -= (uint64_t)n;
	}
	archive_entry_free(entry);
	return r;
}

/* Some readers need an entry for each directory of a path, owned by the unpacking user. */
static int add_dir(struct archive *tar, const char *path, struct cloche_err *err)
{
	struct archive_entry *entry = archive_entry_new();
	int r = 0;

	if (!entry)
		return err_nomem(err);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, AE_IFDIR);
	archive_entry_set_perm(entry, 0755);
	archive_entry_set_uid(entry, geteuid());
	archive_entry_set_gid(entry, getegid());
	if (archive_write_header(tar, entry) < ARCHIVE_WARN)
		r = pack_failed(tar, err);
	archive_entry_free(entry);
	return r;
}

int unpack_pack(int fd, int dir, int list, struct cloche_err *err)
{
	struct archive *tar = archive_write_new();
	FILE *lines = fdopen(dup(list), "r");
	char line[1024];
	int r = 0;

	if (!tar || !lines)
		r = err_nomem(err);
	else if (archive_write_set_format_pax_restricted(tar) < ARCHIVE_WARN ||
		 archive_write_set_bytes_in_last_block(tar, 1) < ARCHIVE_WARN ||
		 archive_write_open_fd(tar, fd) < ARCHIVE_WARN)
		r = pack_failed(tar, err);
	while (r == 0 && fgets(line, sizeof(line), lines)) {
		char *blank = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (!blank)
			r = err_set(err, E_USAGE, "a line of the list has one name");
		else {
			*blank = '\0';
			r = blank[-1] == '/' ? add_dir(tar, line, err)
					     : add_file(tar, dir, line, blank + 1, err);
		}
	}
	if (r == 0 && archive_write_close(tar) < ARCHIVE_WARN)
		r = pack_failed(tar, err);
	if (lines)
		(void)fclose(lines);
	archive_write_free(tar);
	return r;
}
