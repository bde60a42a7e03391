/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The file's time is that of the last cleanup; it contains the time and text of the last
 * failure. */
#define CLEANUP_FILE ".cleanup"

void cleanup_note(int base, const char *error)
{
	_cleanup_fd_ int fd = -1;
	char text[CLEANUP_ERROR_MAX + 32];
	int n;

	if (error) {
		n = snprintf(text, sizeof(text), "%llu %.*s\n",
			(unsigned long long)clock_real_usec(), CLEANUP_ERROR_MAX - 1, error);
		(void)!fs_write_atomic(
			base, CLEANUP_FILE, str_make(text, (size_t)n), 0600, false, NULL);
		return;
	}
	fd = openat(base, CLEANUP_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)!futimens(fd, NULL);
}

void cleanup_read(int base, struct cleanup *ret)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(CLEANUP_ERROR_MAX + 32);
	struct stat st;
	char *end;

	*ret = (struct cleanup){0};
	if (fstatat(base, CLEANUP_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	ret->at_usec =
		(uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
	if (fd_read_file(base, CLEANUP_FILE, &b, NULL) < 0 || buf_len(&b) == 0 || !buf_cstr(&b))
		return;
	ret->error_at = strtoull(buf_cstr(&b), &end, 10);
	snprintf(ret->error, sizeof(ret->error), "%.*s", (int)strcspn(end + (*end == ' '), "\n"),
		end + (*end == ' '));
}
