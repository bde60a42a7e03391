/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NOTHING-PLANTED, INV-NAMED-ONCE): each protected file is mounted over
 * itself, read-only. A directory such as .git is mounted over itself as it is, because a mount
 * point cannot be renamed. These guards follow the mount that contains them, so that a later mount
 * of the user over all of them takes effect. They are found below the descriptor of that mount.
 * Whoever mounts them finds them there again, and compares: another room may write there too.
 *
 * The records of worktrees that the room does not have are read-only, too (INV-REPOSITORY-WHOLE):
 * git inside would take them for the remains of deleted ones, and remove them.
 *
 * Files that the room does not get are guards, too, with something else mounted over them. */
#include "api/start/protect.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "workspace/find.h"
#include "workspace/told.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Leaves some mounts for the user, and for tools. */
enum { PROTECT_MAX = ROOM_MAX_MOUNTS - 192, PROTECT_MAX_WORKTREES = 64, HIDE_LEFT = 64 };

static const char crowded[] =
	"there are more files that this machine obeys (hooks and configurations of git, ...) than "
	"can be made read-only: some can be changed inside; those are looked at when it ends";
static const char unsearched[] =
	"a directory of the sandbox is so large that not all of it was searched for files with "
	"secrets (.env, ...): those far down in it can be read inside";
static const char crowded_worktrees[] =
	"the repository has many linked worktrees elsewhere, so what it knows of all its worktrees "
	"is read-only inside: git cannot add, remove or use one there; \"git worktree prune\" here "
	"removes what is left of old ones";

/* Find the host path of a path that is given as on the host or as in the room. */
static int protect_host_path(
	const cloche_sandbox *sb, const char *path, char **ret, struct cloche_err *err)
{
	for (size_t i = sb->mounts_n; i-- > 0;) {
		const struct room_mount *m = &sb->mounts[i];
		const char *rest = fs_below(path, m->source);

		if (!rest)
			rest = fs_below(path, m->target);
		if (!rest || m->ro)
			continue;
		*ret = rest[0] ? fs_join(m->source, rest) : strdup(m->source);
		return *ret ? 0 : err_nomem(err);
	}
	err_set(err, E_USAGE,
		"--allow-write %s: this is in no directory that the sandbox may write to", path);
	err_hint(err, "name a path in the workspace, or in a directory that is mounted");
	return -E_USAGE;
}

int protect_open(const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err)
{
	for (size_t i = 0; sb->opened && sb->opened[i]; i++) {
		const char *path = sb->opened[i];
		_cleanup_(freep) char *named = NULL, *joined = NULL, *host = NULL;
		int r;

		if (path[0] != '/' && !sb->workspace)
			return err_set(err, E_USAGE,
				"--allow-write %s: this path is relative to the workspace, and "
				"there is none",
				path);
		joined = fs_join(sb->workspace ? sb->workspace : "/", path);
		named = joined ? fs_absolute(joined) : NULL;
		if (!named)
			return err_nomem(err);
		r = protect_host_path(sb, named, &host, err);
		if (r < 0)
			return r;
		if (strv_add(&ret->opened, str_from(host)) < 0)
			return err_nomem(err);
	}
	return 0;
}

struct protector {
	const cloche_sandbox *sb;
	struct room_spec *room;
	size_t mount;       /* the mount that is searched */
	unsigned worktrees; /* elsewhere */
	bool only_hide;     /* it may not be written to */
	const char **crowded;
	struct cloche_err *err;
};

static bool protect_is_mounted(const struct protector *p, const char *path)
{
	for (size_t i = p->mount + 1; i < p->room->mounts_n; i++) {
		const char *rest =
			fs_below(p->room->mounts[i].target, p->room->mounts[p->mount].target);

		if (rest && strcmp(rest, path) == 0)
			return true;
	}
	return false;
}

static int protect_add(
	struct protector *p, const char *path, const struct stat *st, enum find_kind kind)
{
	bool read_only = kind != FIND_PINNED;
	int r;

	/* A second mount over a directory would hide what is mounted in it. */
	if (!read_only && protect_is_mounted(p, path))
		return 0;
	if (p->room->mounts_n >= PROTECT_MAX) {
		*p->crowded = crowded;
		return 0;
	}
	r = room_spec_add_guard(p->room, p->mount, path, st, read_only, p->err);
	if (r == 0) {
		p->room->mounts[p->room->mounts_n - 1].hooks = kind == FIND_HOOKS;
		p->room->mounts[p->room->mounts_n - 1].config = kind == FIND_CONFIG;
	}
	return r;
}

/* If one of them cannot be hidden, there is no room. */
static int protect_hide(struct protector *p, const char *path, const struct stat *st, bool found)
{
	struct room_mount *m;
	int r;

	if (p->room->mounts_n >= ROOM_MAX_MOUNTS - HIDE_LEFT) {
		r = err_set(p->err, E_LIMIT, "%s: there are too many files to hide",
			p->room->mounts[p->mount].source);
		err_hint(p->err, "grant less of it, or show some of them: --hide '!NAME'");
		return r;
	}
	r = room_spec_add_guard(p->room, p->mount, path, st, true, p->err);
	if (r < 0)
		return r;
	m = &p->room->mounts[p->room->mounts_n - 1];
	m->hidden = true;
	m->found = found;
	return 0;
}

/* What is read-only as a whole is not opened in part: programs that may change one file of a
 * directory could make any other there. */
static int protect_refuse_part(
	struct protector *p, const char *source, const struct stat *st, enum find_kind kind)
{
	_cleanup_(buf_donep) struct buf whole = BUF_INIT(8 * PATH_MAX);

	for (size_t i = 0; p->room->opened && p->room->opened[i]; i++) {
		if (kind == FIND_PINNED || !S_ISDIR(st->st_mode) ||
			!fs_is_within(p->room->opened[i], source))
			continue;
		if (told_quote(&whole, str_from(source)) < 0 || !buf_cstr(&whole))
			return err_nomem(p->err);
		err_set(p->err, E_USAGE,
			"--allow-write %s: it is in a directory that is read-only as a whole",
			p->room->opened[i]);
		err_hint(p->err, "name all of it: --allow-write %s", buf_cstr(&whole));
		return -E_USAGE;
	}
	return 0;
}

static int protect_found(void *user, const char *path, const struct stat *st, enum find_kind kind)
{
	struct protector *p = user;
	_cleanup_(freep) char *source = fs_join(p->room->mounts[p->mount].source, path);
	int r;

	if (kind == FIND_HIDDEN_BY_DEFAULT || kind == FIND_HIDDEN_BY_RULE)
		return protect_hide(p, path, st, kind == FIND_HIDDEN_BY_DEFAULT);
	if (p->only_hide)
		return 0;
	if (!source)
		return err_nomem(p->err);
	if (fs_is_within_any(source, p->room->opened))
		return 0;
	r = protect_refuse_part(p, source, st, kind);
	return r < 0 ? r : protect_add(p, path, st, kind);
}

/* Whether the room may write to a worktree by its path on the host. file is its file
 * .git. *ret_taken: something is mounted where the worktree would be. */
static bool protect_shows(const cloche_sandbox *sb, int file, const char *path, bool *ret_taken)
{
	struct stat own, st;

	*ret_taken = false;
	for (size_t i = sb->mounts_n; i-- > 0;) {
		const struct room_mount *m = &sb->mounts[i];
		const char *also = sandbox_second_path(sb, m);
		const char *rest = also ? fs_below(path, also) : NULL;
		_cleanup_fd_ int there = -1;

		rest = rest ? rest : fs_below(path, m->target);
		if (!rest || m->guard)
			continue;
		*ret_taken = true;
		there = rest[0] && !m->ro ? fs_open_beneath(m->fd, rest, O_PATH) : -1;
		return there >= 0 && fstat(file, &own) == 0 && fstat(there, &st) == 0 &&
		       own.st_dev == st.st_dev && own.st_ino == st.st_ino;
	}
	return false;
}

/* Show the place of a worktree that is not in the room, so that git takes it for a living one. Its
 * file says nothing but where the record is. Nothing is shown where the system's own files are. */
static int protect_show_place(struct protector *p, int file, const char *path)
{
	static const char *const systems[] = {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
		"/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"};
	struct room_mount *m;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(systems); i++)
		if (fs_is_within(path, systems[i]))
			return 0;
	if (p->room->mounts_n >= PROTECT_MAX) {
		*p->crowded = crowded;
		return 0;
	}
	r = room_spec_add_opened(p->room, file, path, path, true, p->err);
	if (r < 0)
		return r;
	m = &p->room->mounts[p->room->mounts_n - 1];
	m->found = m->closed = true;
	return 0;
}

/* Keep the directories around a part of the mount in their places. */
static int protect_around(struct protector *p, const char *rest)
{
	int fd = p->room->mounts[p->mount].fd, r = 0;

	for (const char *slash = strchr(rest, '/'); r == 0 && slash;
		slash = strchr(slash + 1, '/')) {
		_cleanup_(freep) char *dir = strndup(rest, (size_t)(slash - rest));
		_cleanup_fd_ int at = dir ? fs_open_beneath(fd, dir, O_PATH | O_DIRECTORY) : -1;
		struct stat st;

		if (!dir)
			return err_nomem(p->err);
		if (at < 0 || fstat(at, &st) < 0)
			return err_sys(p->err, at < 0 ? -at : errno, "find %s", dir);
		r = protect_add(p, dir, &st, FIND_PINNED);
	}
	return r;
}

/* Each takes two mounts and a descriptor. If there are many, the directory with all records is
 * read-only: then git can remove none. */
static int protect_records(struct protector *p, const char *record)
{
	_cleanup_(freep) char *dir = strndup(record, (size_t)(strrchr(record, '/') - record));
	_cleanup_fd_ int fd =
		dir ? fs_open_beneath(p->room->mounts[p->mount].fd, dir, O_PATH | O_DIRECTORY) : -1;
	struct stat st;

	if (!dir)
		return err_nomem(p->err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(p->err, fd < 0 ? -fd : errno, "find %s", dir);
	for (size_t i = 0; i < p->room->mounts_n; i++)
		if (p->room->mounts[i].guard && p->room->mounts[i].ro &&
			p->room->mounts[i].inode == st.st_ino &&
			p->room->mounts[i].device == st.st_dev)
			return 0;
	*p->crowded = crowded_worktrees;
	return protect_add(p, dir, &st, FIND_READ_ONLY);
}

/* Git inside must not take a worktree that the room does not have for a dead one, nor change what
 * is known of it. */
static int protect_worktree(
	void *user, const char *record, const struct stat *st, int file, const char *path)
{
	struct protector *p = user;
	bool taken;
	int r;

	if (p->only_hide)
		return 0;
	if (protect_shows(p->sb, file, path, &taken))
		return 0;
	if (p->worktrees++ >= PROTECT_MAX_WORKTREES && strchr(record, '/')) {
		r = protect_records(p, record);
		return r < 0 ? r : 1;
	}
	r = protect_around(p, record);
	if (r == 0)
		r = protect_add(p, record, st, FIND_READ_ONLY);
	if (r == 0 && !taken)
		r = protect_show_place(p, file, path);
	return r < 0 ? r : 1;
}

int protect_own_file(struct room_spec *ret, size_t mount, int file, struct cloche_err *err)
{
	const struct room_mount *m = &ret->mounts[mount];
	const char *full = NULL;
	struct protector p = {.room = ret, .mount = mount, .crowded = &full, .err = err};
	char path[PATH_MAX], top[PATH_MAX];
	const char *rest;
	struct stat st;
	int r;

	if (file < 0 || m->ro)
		return 0;
	r = fd_path(file, path);
	if (r == 0)
		r = fd_path(m->fd, top);
	if (r < 0 || fstat(file, &st) < 0)
		return err_sys(err, r < 0 ? -r : errno, "find the network log");
	rest = fs_below(path, top);
	if (!rest || !rest[0])
		return 0;
	r = protect_around(&p, rest);
	if (r == 0)
		r = protect_add(&p, rest, &st, FIND_READ_ONLY);
	if (r == 0 && full)
		return err_set(err, E_LIMIT, "there are too many mounts to keep the network log");
	/* A provider that cannot keep it read-only refuses it: it is not just taken care of. */
	if (r == 0)
		ret->mounts[ret->mounts_n - 1].found = false;
	return r;
}

int protect_mount(const cloche_sandbox *sb, struct room_spec *ret, size_t mount,
	const char **ret_crowded, struct cloche_err *err)
{
	const struct room_mount *m = &ret->mounts[mount];
	struct protector p = {.sb = sb,
		.room = ret,
		.mount = mount,
		.only_hide = m->ro,
		.crowded = ret_crowded,
		.err = err};
	_cleanup_(hide_done) struct hide hide = HIDE_INIT(m->fd, sb->hidden);
	/* What nobody has named was found by its own rules (srt, tools). */
	const struct find_calls calls = {
		protect_found, protect_worktree, &p, m->found ? NULL : &hide};
	_cleanup_(freep) char *source = strdup(m->source);
	struct stat st;
	bool cut = false;
	int r;

	if (!source)
		return err_nomem(err);
	if ((m->ro && m->found) || fstat(m->fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	r = workspace_find(m->fd, source, &calls, &cut);
	if (cut && calls.hide && !*ret_crowded)
		*ret_crowded = unsearched;
	return r == -ENOMEM ? err_nomem(err) : r;
}
