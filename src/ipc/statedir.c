/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/statedir.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int statedir_check(struct cloche_err *err)
{
	const char *own = secure_getenv("CLOCHE_STATE_DIR");

	return own && own[0] && own[0] != '/'
		       ? err_set(err, E_CONFIG, "CLOCHE_STATE_DIR is \"%s\": use an absolute path",
				 own)
		       : 0;
}

int statedir_path(const char *name, char **ret, struct cloche_err *err)
{
	const char *own = secure_getenv("CLOCHE_STATE_DIR"), *xdg = secure_getenv("XDG_STATE_HOME");
	_cleanup_(freep) char *home = NULL;
	int r = statedir_check(err);

	if (r < 0)
		return r;
	if (own && own[0]) {
		*ret = fs_join(own, name);
		return *ret ? 0 : err_nomem(err);
	}
	if (xdg && xdg[0] == '/') {
		r = asprintf(ret, "%s/cloche/%s", xdg, name);
		return r < 0 ? err_nomem(err) : 0;
	}
	home = fs_home();
	if (!home)
		return err_set(
			err, E_CONFIG, "there is no home to keep state in: set CLOCHE_STATE_DIR");
	r = asprintf(ret, "%s/.local/state/cloche/%s", home, name);
	return r < 0 ? err_nomem(err) : 0;
}

int statedir_open(const char *name, char **ret_path, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	int fd, r = statedir_path(name, &path, err);

	if (r < 0)
		return r;
	fd = fs_open_private_dir(path, err);
	if (fd < 0)
		err_hint(err,
			"CLOCHE_STATE_DIR names another directory for what outlives sandboxes");
	else if (ret_path)
		*ret_path = TAKE_PTR(path);
	return fd;
}

/* A directory that we cannot search is treated as missing: nothing can be kept below it. */
static int open_searchable(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The directory, or its nearest parent that exists. Cuts the path. */
static int open_nearest(char *path, bool *ret_is_there)
{
	int fd;

	*ret_is_there = true;
	while ((fd = open_searchable(path)) < 0) {
		char *slash = strrchr(path, '/');

		*ret_is_there = false;
		if (!slash || strcmp(path, "/") == 0)
			return -1;
		slash[slash == path] = '\0';
	}
	return fd;
}

int statedir_open_consent(bool *ret_is_there)
{
	_cleanup_(freep) char *path = NULL;

	return statedir_path(STATEDIR_CONSENT, &path, NULL) < 0 ? -1
								: open_nearest(path, ret_is_there);
}

int statedir_open_settings(bool *ret_is_there)
{
	_cleanup_(freep) char *path = NULL;

	return fs_config_path(".", &path) < 0 || !path ? -1 : open_nearest(path, ret_is_there);
}
