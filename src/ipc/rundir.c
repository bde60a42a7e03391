/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/rundir.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANDOM_BYTES = 21 };

static const struct str prefix = STR("sandbox-");

static int open_fallback(struct cloche_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/cloche-%u", (unsigned)geteuid());
	return fs_open_private_dir(path, err);
}

int rundir_open(struct cloche_err *err)
{
	const char *own = secure_getenv("CLOCHE_RUNTIME_DIR");

	if (!own || !own[0])
		return rundir_open_usual(err);
	/* A room may have written below the working directory. */
	return own[0] == '/' ? fs_open_private_dir(own, err)
			     : err_set(err, E_CONFIG,
				       "CLOCHE_RUNTIME_DIR is \"%s\": use an absolute path", own);
}

/* The variable may be left over from another user (su, sudo -E). */
static bool is_ours(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && st.st_uid == geteuid() && access(dir, W_OK) == 0;
}

int rundir_open_usual(struct cloche_err *err)
{
	const char *xdg = secure_getenv("XDG_RUNTIME_DIR");
	_cleanup_(freep) char *path = NULL;
	char usual[64];
	int fd = -1;

	/* A shell without the variable (cron, sudo) must see the same sandboxes. */
	snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
	if (!xdg || xdg[0] != '/' || !is_ours(xdg))
		xdg = usual;
	/* Root of a user namespace alone cannot write to /run. */
	if (geteuid() == 0)
		fd = fs_open_private_dir("/run/cloche", NULL);
	if (fd < 0 && is_ours(xdg)) {
		path = fs_join(xdg, "cloche");
		fd = path ? fs_open_private_dir(path, NULL) : -1;
	}
	return fd >= 0 ? fd : open_fallback(err);
}

int rundir_check_name(const char *name, struct cloche_err *err)
{
	struct str s = str_from(name);

	if (s.n == 0 || s.n > RUNDIR_NAME_BYTES || strchr("-_.", s.p[0]) ||
		!str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "-_."))
		return err_set(err, E_USAGE,
			"name \"%s\": use up to %d letters, digits, '-', '_' and '.', a letter or "
			"digit first",
			name, RUNDIR_NAME_BYTES);
	if (str_starts(s, prefix))
		return err_set(err, E_USAGE, "name \"%s\": it cannot begin as ids do", name);
	return 0;
}

int rundir_word_make(int dir, char ret[RUNDIR_WORD_BYTES + 1], struct cloche_err *err)
{
	rand_id(ret, RUNDIR_WORD_BYTES);
	return fs_write_atomic(dir, RUNDIR_WORD, str_from(ret), 0600, false, err);
}

int rundir_word_read(int dir, char ret[RUNDIR_WORD_BYTES + 1])
{
	_cleanup_fd_ int fd = openat(dir, RUNDIR_WORD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret, RUNDIR_WORD_BYTES) : -1;

	ret[MAX(n, 0)] = '\0';
	return n < 0 ? -errno : 0;
}

void rundir_make_id(char *ret)
{
	memcpy(ret, prefix.p, prefix.n);
	rand_id(ret + prefix.n, RANDOM_BYTES);
}

bool rundir_is_id(struct str name)
{
	return name.n == RUNDIR_ID_BYTES && str_starts(name, prefix) &&
	       str_is_all(str_from_index(name, prefix.n), STR_LOWER STR_DIGITS);
}
