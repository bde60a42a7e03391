/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: srt shows the whole disk and hides parts of it; a room shows the system's
 * directories and the mounts. So every rule becomes a mount, parents first: readable paths are
 * mounted read-only, writable paths for writing, paths that must not be written are mounted over
 * themselves read-only, and paths that must not be read are covered by something empty. A rule that
 * would change nothing at its place is left out. */
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "ipc/statedir.h"
#include "sandbox/srt.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum effect { NOTHING, SHOWN, WRITABLE, HIDDEN };

enum { PLACES_MAX = 4096 };

static const char *const keys[SRT_RULES_END_] = {"filesystem.allowRead", "filesystem.allowWrite",
	"filesystem.denyWrite", "filesystem.denyRead"};

void srt_files_done(struct srt *s)
{
	for (size_t i = 0; i < s->places_n; i++) {
		fd_close(s->places[i].fd);
		free(s->places[i].path);
		free(s->places[i].named);
		free(s->places[i].source);
	}
	free(s->places);
	strv_free(s->pinned);
}

static bool allows(const struct srt_place *p)
{
	return p->rule == SRT_ALLOW_READ || p->rule == SRT_ALLOW_WRITE;
}

/* Open what the user allows. A room may have made a link where it could write; the user did not
 * mean the link's target. Return 0 and -1 as the descriptor if nothing is there. */
static int open_allowed(
	const struct srt *s, enum srt_rule rule, const char *path, int *ret, struct cloche_err *err)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct stat st;
	int r = hostpath_find(path, s->home, keys[rule], &at, &why);
	_cleanup_fd_ int fd = r < 0 ? -1 : fs_open_beneath(at.dir, at.name, O_PATH);

	*ret = -1;
	/* Not if it leads nowhere. */
	if (r < 0 && why.sys_errno == 0 && access(path, F_OK) == 0) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0 || fd == -ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, fd < 0 ? -fd : errno, "%s %s", keys[rule], path);
	if (S_ISLNK(st.st_mode)) {
		_cleanup_(freep) char *real = realpath(path, NULL);

		if (!real)
			return 0;
		err_set(err, E_DENIED, "%s %s is a symbolic link", keys[rule], path);
		err_hint(err, "name %s itself, if that is meant", real);
		return -E_DENIED;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* Open a place, once: from then on it is the file that was found (INV-NAMED-ONCE). real is where it
 * lies; *ret is -1 if it is not there. */
static int open_place(const struct srt *s, enum srt_rule rule, const char *path, int *ret,
	char real[PATH_MAX], struct cloche_err *err)
{
	_cleanup_(freep) char *whole = fs_absolute(path);
	bool within = false;
	int r = 0;

	if (!whole)
		return err_nomem(err);
	if (rule == SRT_ALLOW_READ || rule == SRT_ALLOW_WRITE) {
		r = open_allowed(s, rule, whole, ret, err);
		return r < 0 || *ret < 0 ? r : fd_path(*ret, real);
	}
	*ret = MAX(hostpath_follow(whole, NULL, real, &within), -1);
	return 0;
}

static int add_place(struct srt *s, enum srt_rule rule, const char *named, const char *path,
	struct cloche_err *err)
{
	struct srt_place *grown = reallocarray(s->places, s->places_n + 1, sizeof(*grown)), *p;
	char real[PATH_MAX];
	int r;

	if (!grown)
		return err_nomem(err);
	s->places = grown;
	p = &s->places[s->places_n++];
	*p = (struct srt_place){.rule = rule, .fd = -1};
	r = open_place(s, rule, path, &p->fd, real, err);
	p->is_there = p->fd >= 0;
	p->path = p->is_there ? strdup(real) : fs_absolute(path);
	p->named = strdup(named);
	p->source = fs_absolute(path);
	if (!p->path || !p->named || !p->source)
		return err_nomem(err);
	if (r < 0)
		return r;
	if (s->places_n > PLACES_MAX)
		return err_set(err, E_CONFIG, "%s: more than %d paths", keys[rule], PLACES_MAX);
	if (p->fd >= 0 && fstat(p->fd, &p->st) < 0)
		return err_sys(err, errno, "%s %s", keys[rule], path);
	p->is_dir = S_ISDIR(p->st.st_mode);
	return 0;
}

/* Expand "~" to the home directory, and put relative paths into the working directory. Heap or
 * NULL. */
static char *expand(const struct srt *s, const char *named)
{
	if (named[0] == '~' && (named[1] == '\0' || named[1] == '/'))
		return s->home ? fs_join(s->home, named[1] ? named + 2 : "") : NULL;
	return fs_join(s->cwd, named);
}

/* "*" also matches names that begin with a dot, and therefore these two. */
static bool is_dots(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int add_pattern(struct srt *s, enum srt_rule rule, const char *named, const char *pattern,
	struct cloche_err *err)
{
	glob_t found;
	int r = 0, e;

	if (strstr(pattern, "**"))
		return err_set(err, E_CONFIG, "%s \"%s\": ** is not supported here: name the paths",
			keys[rule], named);
	e = glob(pattern, GLOB_NOSORT | GLOB_PERIOD, NULL, &found);
	if (e == GLOB_NOMATCH)
		return add_place(s, rule, named, pattern, err);
	if (e != 0)
		return err_set(err, E_CONFIG, "%s \"%s\" cannot be looked for", keys[rule], named);
	for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
		if (!is_dots(found.gl_pathv[i]))
			r = add_place(s, rule, named, found.gl_pathv[i], err);
	globfree(&found);
	return r;
}

int srt_files_add(struct srt *s, enum srt_rule rule, const char *named, struct cloche_err *err)
{
	_cleanup_(freep) char *path = expand(s, named);

	if (!path || !named[0])
		return err_set(err, E_CONFIG, "%s \"%s\" names no path", keys[rule], named);
	return strpbrk(path, "*?[") ? add_pattern(s, rule, named, path, err)
				    : add_place(s, rule, named, path, err);
}

/* Parents first; rules of one path in the order of enum srt_rule. */
static int compare(const void *a, const void *b)
{
	const struct srt_place *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	return r ? r : (int)x->rule - (int)y->rule;
}

/* Return the nearest earlier mount that contains the place; i if there is none. */
static size_t find_around(const struct srt *s, const enum effect *effects, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (effects[k] != NOTHING && fs_is_within(s->places[i].path, s->places[k].path))
			return k;
	return i;
}

static enum effect around(const struct srt *s, const enum effect *effects, size_t i)
{
	size_t k = find_around(s, effects, i);

	return k == i ? NOTHING : effects[k];
}

/* If a mount is hidden as a whole and something below it is allowed, mount only that: the empty
 * cover has no mount point for it. */
static void leave_out_hidden(const struct srt *s, enum effect *effects, size_t i)
{
	const struct srt_place *p = &s->places[i];
	size_t k = find_around(s, effects, i);

	if (effects[i] != HIDDEN || k == i || strcmp(s->places[k].path, p->path) != 0 ||
		around(s, effects, k) != NOTHING)
		return;
	for (size_t j = i + 1; j < s->places_n; j++)
		if (allows(&s->places[j]) && s->places[j].is_there &&
			fs_is_within(s->places[j].path, p->path))
			effects[i] = effects[k] = NOTHING;
}

static bool is_denied(const struct srt *s, const struct srt_place *p)
{
	for (size_t i = 0; i < s->places_n; i++)
		if (s->places[i].rule == SRT_DENY_WRITE && fs_is_within(p->path, s->places[i].path))
			return true;
	return false;
}

/* The working directory was not named in the settings. */
static void tell(const struct srt *s, const struct srt_place *p, const char *here)
{
	if (p->named[0])
		srt_tell(s, keys[p->rule], p->named, here);
}

static void tell_weaker(const struct srt *s, const struct srt_place *p, const char *here)
{
	srt_tell_weaker(s, keys[p->rule], p->named, here);
}

/* Directories of this machine that every room shows. */
static bool is_system(const char *path)
{
	static const char *const dirs[] = {
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (fs_is_within(path, dirs[i]))
			return true;
	return false;
}

/* Paths that a sandbox has of its own, whatever is there on this machine. */
static bool is_own(const char *path)
{
	return strcmp(path, "/tmp") == 0 || fs_is_within(path, "/dev") ||
	       fs_is_within(path, "/proc") || fs_is_within(path, "/sys");
}

static int hide(struct srt *s, const struct srt_place *p, struct cloche_err *err)
{
	_cleanup_(freep) char *dir = NULL, *file = NULL;
	_cleanup_fd_ int fd = -1;
	int r = statedir_path("empty/dir", &dir, err);

	if (r == 0)
		r = statedir_path("empty/file", &file, err);
	if (r == 0)
		r = fs_mkdirs(dir, 0700, err);
	if (r < 0)
		return r;
	fd = open(file, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (fd < 0)
		return err_sys(err, errno, "make %s", file);
	return cloche_sandbox_add_mount(s->sb, p->is_dir ? dir : file, p->path, true, err);
}

static bool is_pinned(const struct srt *s, const char *dir)
{
	for (size_t i = 0; s->pinned && s->pinned[i]; i++)
		if (strcmp(s->pinned[i], dir) == 0)
			return true;
	return false;
}

/* A path that is denied in a writable mount is covered by path only. So mount the directories on
 * the way over themselves, as a mount point cannot be renamed. */
static int pin_parents(struct srt *s, const struct srt_place *p, const struct srt_place *around,
	struct cloche_err *err)
{
	const char *slash =
		p->path + strlen(around->path); /* at the end, if it is the place itself */
	int r = 0;

	while (r == 0 && *slash && (slash = strchr(slash + 1, '/'))) {
		_cleanup_(freep) char *dir = strndup(p->path, (size_t)(slash - p->path));
		_cleanup_fd_ int fd = -1;
		struct stat st;

		if (!dir)
			return err_nomem(err);
		if (is_pinned(s, dir))
			continue;
		fd = fs_open_beneath(around->fd, fs_below(dir, around->path), O_PATH | O_DIRECTORY);
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_sys(err, fd < 0 ? -fd : errno, "find %s", dir);
		r = sandbox_add_guard(
			s->sb, around->mount, fs_below(dir, around->path), &st, false, err);
		if (r == 0 && strv_add(&s->pinned, str_from(dir)) < 0)
			return err_nomem(err);
	}
	return r;
}

static int mount(struct srt *s, const enum effect *effects, size_t i, struct cloche_err *err)
{
	struct srt_place *p = &s->places[i];
	size_t k = find_around(s, effects, i);
	bool inside = !allows(p) && k != i && effects[k] == WRITABLE;
	int fd, r = 0;

	if (effects[i] == NOTHING)
		return 0;
	if (inside)
		r = pin_parents(s, p, &s->places[k], err);
	if (r == 0 && effects[i] == HIDDEN)
		return hide(s, p, err);
	if (r < 0)
		return r;
	/* A part of what may be written that may not. */
	if (inside && fs_below(p->path, s->places[k].path)[0])
		return sandbox_add_guard(s->sb, s->places[k].mount,
			fs_below(p->path, s->places[k].path), &p->st, true, err);
	fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	p->mount = s->sb->mounts_n;
	return sandbox_add_mount(s->sb, fd < 0 ? -errno : fd,
		&(struct room_mount){.source = allows(p) ? p->source : p->path,
			.target = p->path,
			.ro = effects[i] == SHOWN,
			.found = true},
		err);
}

static enum effect settle_read(const struct srt *s, const struct srt_place *p, enum effect at)
{
	enum effect e = at != NOTHING || is_system(p->path) ? NOTHING : SHOWN;

	tell(s, p, e == SHOWN ? "shown read-only" : "shown anyhow");
	return e;
}

static enum effect settle_write(const struct srt *s, const struct srt_place *p, enum effect at)
{
	if (is_denied(s, p)) {
		tell(s, p, "shown read-only: denyWrite wins");
		return at == NOTHING ? SHOWN : NOTHING;
	}
	tell(s, p,
		"writable, but for what this machine would obey there (.git/hooks, .vscode, ...)");
	return at == WRITABLE ? NOTHING : WRITABLE;
}

static enum effect settle_deny(const struct srt *s, const struct srt_place *p, enum effect at)
{
	bool read = p->rule == SRT_DENY_READ;
	enum effect e = NOTHING;

	if (read && fs_is_within(p->path, "/etc")) {
		tell_weaker(s, p, "the sandbox has an /etc of its own, which it can read");
		return NOTHING;
	}
	if (read && (at == WRITABLE || at == SHOWN || is_system(p->path)))
		e = HIDDEN;
	else if (!read && at == WRITABLE)
		e = SHOWN;
	if (e != NOTHING && !p->is_there) {
		if (at == WRITABLE)
			tell_weaker(s, p,
				"not there yet: if the inside makes it, it may read and write it");
		else
			tell(s, p, "not there");
		return NOTHING;
	}
	if (read)
		tell(s, p, e == HIDDEN ? "empty inside" : "not shown anyhow");
	else
		tell(s, p, e == SHOWN ? "read-only inside" : "not writable anyhow");
	return e;
}

/* Rules that do not depend on the surrounding mount come first. */
static int settle(struct srt *s, const struct srt_place *p, enum effect at, enum effect *ret,
	struct cloche_err *err)
{
	*ret = NOTHING;
	if (p->rule == SRT_ALLOW_WRITE && strcmp(p->path, "/") == 0)
		return err_set(err, E_CONFIG, "%s \"/\": name the directories that may be written",
			keys[p->rule]);
	if (allows(p) && at == HIDDEN) {
		err_set(err, E_CONFIG, "%s lies in a part of a directory that denyRead hides",
			p->path);
		err_hint(err, "deny the whole directory, and allow the parts that are needed");
		return -E_CONFIG;
	}
	if (allows(p) && is_own(p->path))
		tell(s, p, "the sandbox has one of its own");
	else if (strcmp(p->path, "/") == 0)
		tell(s, p, "the system's directories are shown read-only, and nothing else of it");
	else if (allows(p) && !p->is_there)
		tell_weaker(s, p, "not there: left out");
	else if (p->rule == SRT_ALLOW_READ)
		*ret = settle_read(s, p, at);
	else if (p->rule == SRT_ALLOW_WRITE)
		*ret = settle_write(s, p, at);
	else
		*ret = settle_deny(s, p, at);
	return 0;
}

int srt_files_settle(struct srt *s, struct cloche_err *err)
{
	_cleanup_(freep) enum effect *effects = NULL;
	/* The command's working directory, which the settings do not name. */
	int r = add_place(s, SRT_ALLOW_READ, "", s->cwd, err);

	if (r < 0)
		return r;
	effects = calloc(s->places_n, sizeof(*effects));
	if (!effects)
		return err_nomem(err);
	qsort(s->places, s->places_n, sizeof(*s->places), compare);
	for (size_t i = 0; r == 0 && i < s->places_n; i++) {
		r = settle(s, &s->places[i], around(s, effects, i), &effects[i], err);
		if (r == 0)
			leave_out_hidden(s, effects, i);
	}
	/* cloche_srt_explain() changes nothing. */
	for (size_t i = 0; !s->fn && r == 0 && i < s->places_n; i++)
		r = mount(s, effects, i, err);
	return r < 0 ? r : sandbox_set_workdir(s->sb, s->cwd, err);
}
