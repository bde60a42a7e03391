/* SPDX-License-Identifier: Apache-2.0 */
#include "room/cgroup-file.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 * 1024, PROCS_MAX_BYTES = 1 << 20 };

int cgroup_write(const char *dir, const char *file, const char *value)
{
	_cleanup_(freep) char *path = fs_join(dir, file);
	_cleanup_fd_ int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	if (!path)
		return -ENOMEM;
	return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int cgroup_write_number(const char *dir, const char *file, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return cgroup_write(dir, file, text);
}

static int read_file(const char *dir, const char *file, struct buf *ret)
{
	_cleanup_(freep) char *path = dir ? fs_join(dir, file) : NULL;

	return path ? fd_read_file(AT_FDCWD, path, ret, NULL) : -ENOENT;
}

uint64_t cgroup_read_number(const char *dir, const char *file, const char *key)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct str rest;
	uint64_t v = 0;

	if (read_file(dir, file, &text) < 0)
		return 0;
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_next_line(&rest);

		if (key && !str_eq(str_next(&line, ' '), str_from(key)))
			continue;
		if (parse_u64(line, UINT64_MAX, &v) == 0)
			return v;
	}
	return 0;
}

uint64_t cgroup_sum_numbers(const char *dir, const char *file, const char *key)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	uint64_t sum = 0, v;
	struct str rest;

	if (read_file(dir, file, &text) < 0)
		return 0;
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_next_line(&rest);

		while (line.n) {
			struct str word = str_next(&line, ' ');
			size_t n = str_chr(word, '=');

			if (str_eq(str_prefix(word, n), str_from(key)) &&
				parse_u64(str_from_index(word, n + 1), UINT64_MAX, &v) == 0)
				sum += v;
		}
	}
	return sum;
}

bool cgroup_has_file(const char *dir, const char *file)
{
	_cleanup_(freep) char *path = fs_join(dir, file);

	return path && access(path, F_OK) == 0;
}

bool cgroup_file_has_word(const char *dir, const char *file, const char *word)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct str rest, line;

	if (read_file(dir, file, &text) < 0)
		return false;
	rest = buf_str(&text);
	line = str_next_line(&rest);
	while (line.n)
		if (str_eq(str_next(&line, ' '), str_from(word)))
			return true;
	return false;
}

int cgroup_each_process(const char *dir, void (*fn)(pid_t pid, void *user), void *user)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(PROCS_MAX_BYTES);
	_cleanup_(freep) char *path = fs_join(dir, "cgroup.procs");
	struct str rest;
	int n = 0;

	if (!path || fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return -EIO;
	for (rest = buf_str(&text); rest.n; n++) {
		struct str line = str_next_line(&rest);
		uint64_t pid;

		/* 0 would be "our own process group" to kill(). */
		if (parse_u64(line, INT32_MAX, &pid) == 0 && pid > 1)
			fn((pid_t)pid, user);
	}
	return n;
}
