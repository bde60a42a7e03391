/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: only inside is it known who a user of the room is, as the room has its own
 * accounts. So HOME, USER and LOGNAME are set here, where nobody has set them. A user without an
 * account gets one with an empty home, as programs ask for a name and for a place to write to.
 *
 * What is read and made here belongs to the room, and its processes may have changed it: a file is
 * read only if it is a regular one, so that nothing is waited for, and up to a bound; no link is
 * followed to what is written, or on the way there. Nothing of it is needed to start the process,
 * so nothing is an error except a lack of memory. */
#include "base/account.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USER_ACCOUNTS_MAX = 1 << 20, USER_NAME_MAX = 64 };

/* Open a directory of the root itself: not where a link of the root leads, as that may be a mount
 * of the host (INV-HOST-UNCHANGED). */
static int user_open_top(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int user_open_accounts(int flags)
{
	_cleanup_fd_ int etc = user_open_top("/etc");
	_cleanup_fd_ int fd =
		etc < 0 ? -1
			: openat(etc, "passwd",
				  flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? TAKE_FD(fd) : -1;
}

/* Fill in the name and home of a user's account. Return false if there is none. */
static bool user_find(uid_t uid, char name[USER_NAME_MAX], char home[PATH_MAX])
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(USER_ACCOUNTS_MAX);
	_cleanup_fd_ int fd = user_open_accounts(O_RDONLY);
	struct str f[ACCOUNT_FIELDS];
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	if (fd < 0 || fd_read_to_end(fd, &text) < 0 ||
		!account_find(buf_str(&text), str_from(number), f) ||
		f[ACCOUNT_NAME].n >= USER_NAME_MAX || f[ACCOUNT_HOME].n >= PATH_MAX ||
		memchr(f[ACCOUNT_NAME].p, '\0', f[ACCOUNT_NAME].n))
		return false;
	snprintf(name, USER_NAME_MAX, "%.*s", STR_FMT(f[ACCOUNT_NAME]));
	snprintf(home, PATH_MAX, "%.*s", STR_FMT(f[ACCOUNT_HOME]));
	return true;
}

/* Make a home directly in /home, unless something is there. Return whether there is a directory. */
static bool user_make_home(const struct exec_spec *s, const char *home)
{
	const char *name = fs_below(home, "/home");
	_cleanup_fd_ int top = -1, fd = -1;
	bool made;
	struct stat st;

	if (!name || !name[0] || strchr(name, '/') || strcmp(name, ".") == 0 ||
		strcmp(name, "..") == 0)
		return false;
	(void)mkdir("/home", 0755);
	top = user_open_top("/home");
	made = top >= 0 && mkdirat(top, name, 0700) == 0;
	fd = top < 0 ? -1 : openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (made && st.st_uid == geteuid() && st.st_uid != s->uid)
		(void)!fchown(fd, s->uid, s->gid);
	return true;
}

static void user_add(const struct exec_spec *s, const char *name, const char *home)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(PATH_MAX);
	_cleanup_fd_ int fd = user_open_accounts(O_WRONLY | O_APPEND);

	if (fd >= 0 &&
		buf_printf(&line, "%s:x:%u:%u::%s:/bin/sh\n", name, s->uid, s->gid, home) == 0)
		(void)!fd_write_all(fd, buf_data(&line), buf_len(&line));
}

int user_settle(struct exec_spec *s)
{
	char name[USER_NAME_MAX], home[PATH_MAX];
	const char *const values[][2] = {{"HOME", home}, {"USER", name}, {"LOGNAME", name}};
	bool complete = true, has_home = strv_env_get(s->env, "HOME");
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		complete = complete && strv_env_get(s->env, values[i][0]);
	/* Our own workers have no environment. */
	if (complete || !s->env)
		return 0;
	if (user_find(s->uid, name, home)) {
		if (!has_home)
			(void)user_make_home(s, home);
	} else if (s->uid == 0) {
		snprintf(name, sizeof(name), "root");
		snprintf(home, sizeof(home), "/root");
	} else {
		snprintf(name, sizeof(name), "u%u", s->uid);
		snprintf(home, sizeof(home), "/home/%s", name);
		if (!has_home && user_make_home(s, home))
			user_add(s, name, home);
		else
			snprintf(home, sizeof(home), "/tmp");
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(values); i++)
		if (!strv_env_get(s->env, values[i][0]))
			r = strv_env_set(&s->env, values[i][0], values[i][1]);
	return r;
}
