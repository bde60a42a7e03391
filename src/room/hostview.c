/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The host's system directories contain programs and libraries that its package manager installed
 * and every user may read. They are shown read-only, or below a layer of the room's own. On most
 * systems all except /usr are links into it, which are made anew. Package stores (Nix, Guix) are of
 * the same kind, and always read-only. Everything else, above all /home, /root, /var, /run, /srv,
 * /opt, /mnt and /media, does not exist in the room unless mounted (INV-HOST-HIDDEN). */
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "room/layers.h"
#include "room/mount.h"
#include "room/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const stores[] = {"/nix/store", "/gnu/store"};

/* "/bin" -> "usr/bin": copy a link between the system's directories. */
static int copy_link(
	int host, int root, const char *path, bool *ret_is_link, struct cloche_err *err)
{
	char to[256];
	ssize_t n = readlinkat(host, host < 0 ? path : path + 1, to, sizeof(to) - 1);

	*ret_is_link = n > 0;
	if (n <= 0)
		return 0;
	to[n] = '\0';
	if (symlinkat(to, root, path + 1) < 0)
		return err_sys(err, errno, "make the link %s", path);
	return 0;
}

static int show_store(struct parts_view *v, const char *path, struct cloche_err *err)
{
	char parent[32];
	int r;

	if (access(path, F_OK) < 0)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)strcspn(path + 1, "/"), path + 1);
	r = parts_mkdir(v->root, parent, 0755, err);
	return r < 0 ? r
		     : parts_show(v, path, path + 1, true, MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
}

int hostview_make(struct parts_view *v, const struct rootfs *r, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	size_t i;
	int e = 0;

	for (i = 0; dirs[i] && e == 0; i++) {
		bool is_link;

		e = copy_link(AT_FDCWD, v->root, dirs[i], &is_link, err);
		if (e < 0 || is_link)
			continue;
		if (r->host_trees[i] >= 0)
			e = parts_mkdir(v->root, dirs[i] + 1, LAYERS_COVERED, err);
		else
			e = parts_show(v, dirs[i], dirs[i] + 1, true,
				MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
	}
	for (i = 0; i < ARRAY_SIZE(stores) && e == 0; i++)
		e = show_store(v, stores[i], err);
	return e;
}

int hostview_make_links(int host, int root, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	bool is_link;
	int e = 0;

	for (size_t i = 0; dirs[i] && e == 0; i++)
		e = copy_link(host, root, dirs[i], &is_link, err);
	return e;
}

void hostview_each(hostview_fn fn, void *user)
{
	const char *const *dirs = layers_host_dirs();
	struct stat st;

	for (size_t i = 0; dirs[i]; i++)
		if (lstat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			fn(user, dirs[i], true);
	for (size_t i = 0; i < ARRAY_SIZE(stores); i++)
		if (stat(stores[i], &st) == 0)
			fn(user, stores[i], true);
	etc_each(fn, user);
}

/* Decode "\\040" and the like, in place. */
static void hostview_unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		if (at[0] == '\\' && at[1] && at[2] && at[3]) {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

/* Do not show what this user cannot reach, nor what is too much. */
static void show_submount(struct parts_view *v, const char *path)
{
	_cleanup_fd_ int tree = mount_clone(AT_FDCWD, path, MOUNT_ATTR_RDONLY | PARTS_QUIET, NULL);
	struct stat st;

	if (tree >= 0 && fstat(tree, &st) == 0)
		(void)!parts_collect(v, TAKE_FD(tree), path, S_ISDIR(st.st_mode));
}

int hostview_submounts(struct parts_view *v, const char *dir, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4 << 20);
	char path[PATH_MAX], last[PATH_MAX] = "";
	size_t n = strlen(dir);
	struct str rest;
	int r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", &text, err);

	for (rest = buf_str(&text); r == 0 && rest.n;) {
		struct str line = str_next_line(&rest);

		/* proc(5): the fifth field. */
		for (int i = 0; i < 4; i++)
			(void)str_next(&line, ' ');
		line = str_next(&line, ' ');
		if (line.n >= sizeof(path) || line.n <= n + 1 || memcmp(line.p, dir, n) != 0 ||
			line.p[n] != '/')
			continue;
		snprintf(path, sizeof(path), "%.*s", STR_FMT(line));
		hostview_unescape(path);
		/* Skip mounts below the previous one: they came with it. */
		if (last[0] && fs_is_within(path, last))
			continue;
		memcpy(last, path, sizeof(last));
		show_submount(v, path);
	}
	return r;
}
