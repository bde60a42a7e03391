/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A program is named by a path, or found on the user's PATH. If that is the stand-in of a version
 * manager, the chosen version takes its place (tool_homes.c). Links are followed to the file
 * itself, and its place shows what it belongs to: a virtual environment, an npm package, a version
 * of a run-time, a package below /opt; if none of these, it is a program in one file. All of this
 * is shown at the same path as on the host, because scripts and environments name each other by
 * absolute paths. What the file needs in turn (the interpreter of "#!", the loader of an ELF file,
 * the Python that an environment was made with) is found in the same way.
 *
 * Nothing as wide as a home is ever shown: a directory is shown whole only if it is clearly the
 * tool's own, and is not the home, a directory above it, or one of the directories in it that many
 * programs share. */
#include "toolchain/toolchain.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "jail/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_DEPTH = 6, MAX_MOUNTS = 32 };

struct search {
	const struct toolchain_query *q;
	struct toolchain *t;
	const char *asked; /* for messages */
	bool wary;         /* what is added now was named by a file that a room may have written */
	struct cloche_err *err;
};

static const char *const system_dirs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/nix/store", "/gnu/store", "/etc/alternatives"};

/* Whether a path of the host is the same inside. */
static bool toolchain_is_shown(const struct toolchain_query *q, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++)
		if (fs_is_within(path, system_dirs[i]))
			return true;
	return fs_is_within_any(path, q->shown);
}

char *toolchain_find(const struct toolchain_query *q, const char *name, const char *without)
{
	struct str rest = str_from(q->path);

	while (rest.n) {
		size_t n = str_chr(rest, ':');
		_cleanup_(freep) char *dir = str_dup(str_prefix(rest, n));
		char *path;

		rest = str_from_index(rest, n + 1);
		/* A relative directory would depend on our working directory. */
		if (!dir || dir[0] != '/' || (without && fs_is_within(dir, without)))
			continue;
		path = fs_join(dir, name);
		if (path && tool_is_program(path))
			return path;
		free(path);
	}
	return NULL;
}

void toolchain_done(struct toolchain *t)
{
	for (size_t i = 0; i < t->mounts_n; i++) {
		free(t->mounts[i].source);
		free(t->mounts[i].target);
	}
	free(t->mounts);
	strv_free(t->dirs);
	strv_free(t->vars);
	strv_free(t->notes);
	free(t->program);
	*t = TOOLCHAIN_INIT;
}

/* As fs_join(); NULL if a is NULL. */
static char *join(const char *a, const char *b)
{
	return a ? fs_join(a, b) : NULL;
}

static bool exists_in(const char *dir, const char *name)
{
	_cleanup_(freep) char *path = join(dir, name);

	return path && access(path, F_OK) == 0;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? str_dup(str_make(path, slash == path ? 1 : (size_t)(slash - path))) : NULL;
}

/* The path without links. Each link on the way is read once, and those that a room may have made
 * are noted: between two looks it could exchange them (INV-NAMED-ONCE). What is shown is opened
 * later by that path, through no link. Heap; NULL with errno. */
static char *follow(struct search *s, const char *path)
{
	char real[PATH_MAX];
	int fd = hostpath_follow(path, s->q->writable, real, &s->wary);

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	fd_close(fd);
	return strdup(real);
}

/* --- what is shown --- */

static bool is_harmless(const struct search *s, const char *dir);

static bool is_mounted(const struct toolchain *t, const char *path)
{
	for (size_t i = 0; i < t->mounts_n; i++)
		if (fs_is_within(path, t->mounts[i].target))
			return true;
	return false;
}

static bool is_there(const struct search *s, const char *path)
{
	return toolchain_is_shown(s->q, path) || is_mounted(s->t, path);
}

static int judge_mount(struct search *s, const char *source)
{
	int r;

	if (source_judge_found(source, s->q->home, NULL) < 0)
		return err_set(s->err, E_DENIED,
			"%s needs %s, where credentials lie: it is not shown", s->asked, source);
	if (s->wary && !fs_is_within_any(source, s->q->writable) && !is_harmless(s, source)) {
		r = err_set(s->err, E_DENIED,
			"%s asks for %s; a sandbox may have written that, so it is not shown "
			"unasked",
			s->asked, source);
		err_hint(s->err, "if it shall be shown: --tool %s", source);
		return r;
	}
	if (s->t->mounts_n == MAX_MOUNTS)
		return err_set(s->err, E_LIMIT, "%s needs too much of this machine", s->asked);
	return 0;
}

static int add_mount(struct search *s, const char *source, const char *target)
{
	struct toolchain_mount m = {strdup(source), strdup(target)}, *grown;
	int r = judge_mount(s, source);
	char *note = NULL;

	grown = r == 0 ? reallocarray(s->t->mounts, s->t->mounts_n + 1, sizeof(*grown)) : NULL;
	if (grown)
		s->t->mounts = grown;
	if (grown && m.source && m.target &&
		asprintf(&note, "%s: %s is shown inside, read-only", s->asked, source) >= 0 &&
		strv_take(&s->t->notes, note) == 0) {
		s->t->mounts[s->t->mounts_n++] = m;
		return 0;
	}
	free(m.source);
	free(m.target);
	return r < 0 ? r : err_nomem(s->err);
}

/* Shows a directory or file at its own path, unless it is there already. */
static int show(struct search *s, const char *path)
{
	return is_there(s, path) ? 0 : add_mount(s, path, path);
}

static int add_dir(struct search *s, const char *dir)
{
	for (char *const *d = s->t->dirs; d && *d; d++)
		if (strcmp(*d, dir) == 0)
			return 0;
	return strv_add(&s->t->dirs, str_from(dir)) < 0 ? err_nomem(s->err) : 0;
}

/* --- what a file belongs to --- */

/* Whether a directory may be shown whole, if it looks like a tool's. */
static bool may_be_own(const struct search *s, const char *dir)
{
	static const char *const shared[] = {".local", ".local/share", ".local/lib", ".config",
		".cache", ".local/state", "bin", ".local/bin", "Documents", "src", "go"};
	const char *home = s->q->home;

	if (!strchr(dir + 1, '/') || fs_is_within("/usr/local", dir))
		return false;
	if (!home)
		return true;
	if (fs_is_within(home, dir))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		_cleanup_(freep) char *path = fs_join(home, shared[i]);

		if (!path || strcmp(path, dir) == 0)
			return false;
	}
	return true;
}

static bool has_python(const char *prefix)
{
	_cleanup_(freep) char *lib = join(prefix, "lib");
	DIR *d = lib ? opendir(lib) : NULL;
	bool found = false;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = strncmp(e->d_name, "python", 6) == 0 && e->d_name[6] >= '0' &&
			e->d_name[6] <= '9';
	if (d)
		closedir(d);
	return found;
}

/* Whether it has the shape of a Node, Go or Rust as its makers publish it. */
static bool is_published(const char *dir)
{
	return (exists_in(dir, "bin/node") && exists_in(dir, "include/node")) ||
	       (exists_in(dir, "VERSION") && exists_in(dir, "pkg/tool")) ||
	       (exists_in(dir, "bin/rustc") && exists_in(dir, "lib/rustlib"));
}

/* Whether it has the shape of an installed run-time. */
static bool is_runtime(const char *dir)
{
	return exists_in(dir, "pyvenv.cfg") || exists_in(dir, "conda-meta") || is_published(dir) ||
	       (exists_in(dir, "bin/node") && exists_in(dir, "lib/node_modules")) ||
	       (exists_in(dir, "bin") && has_python(dir)) ||
	       (exists_in(dir, "release") && exists_in(dir, "lib/modules"));
}

/* Directories that hold one tool per entry, so many levels further down. */
struct place {
	const char *variable, *below;
	unsigned levels;
	bool runtime;       /* only what its maker publishes, and packages beside it */
	const char *in_own; /* the place in the variable's directory; NULL: this itself */
};
static const struct place places[] = {
	{"NVM_DIR", ".nvm/versions/node", 1, true, "versions/node"},
	{"FNM_DIR", ".local/share/fnm/node-versions", 1, true},
	{NULL, ".fnm/node-versions", 1, true},
	{NULL, ".volta/tools/image", 2, true},
	{"PYENV_ROOT", ".pyenv/versions", 1, true, "versions"},
	{"NODENV_ROOT", ".nodenv/versions", 1, true, "versions"},
	{"RBENV_ROOT", ".rbenv/versions", 1, true, "versions"},
	{"GOENV_ROOT", ".goenv/versions", 1, true, "versions"},
	/* The managers themselves: of no use without their versions and settings. */
	{"PYENV_ROOT", ".pyenv", 0, false},
	{"NODENV_ROOT", ".nodenv", 0, false},
	{"RBENV_ROOT", ".rbenv", 0, false},
	{"GOENV_ROOT", ".goenv", 0, false},
	{NULL, ".asdf/installs", 2, true},
	{NULL, ".local/share/mise/installs", 2, true},
	{NULL, ".local/share/uv/python", 1, true},
	{NULL, ".rustup/toolchains", 1, true},
	{NULL, ".sdkman/candidates", 2, true},
	{NULL, "sdk", 1, false},
	{NULL, ".bun", 0, false},
	{NULL, ".deno", 0, false},
	{NULL, ".linuxbrew", 0, false},
	{NULL, ".local/share/uv/tools", 1, false},
	{NULL, ".local/share/pipx/venvs", 1, false},
	{NULL, ".local/pipx/venvs", 1, false},
	{"PNPM_HOME", ".local/share/pnpm", 0, false},
};

static char *known_place(const struct search *s, const char *path, bool runtimes_only)
{
	const char *opt = s->q->opt ? s->q->opt : "/opt";
	char *found = runtimes_only ? NULL : tool_cut_below(path, opt, 1);

	if (!found && !runtimes_only)
		found = tool_cut_below(path, "/home/linuxbrew/.linuxbrew", 0);
	for (size_t i = 0; !found && i < ARRAY_SIZE(places); i++) {
		const struct place *p = &places[i];

		if (runtimes_only && !p->runtime)
			continue;
		_cleanup_(freep) char *own =
			p->variable ? tool_home_dir(s->q, p->variable, p->below) : NULL;
		_cleanup_(freep) char *in_own = p->in_own ? join(own, p->in_own) : NULL;
		_cleanup_(freep) char *below = join(s->q->home, p->below);
		const char *dir = p->in_own ? in_own : own;

		if (below)
			found = tool_cut_below(path, below, p->levels);
		if (!found && dir)
			found = tool_cut_below(path, dir, p->levels);
	}
	return found;
}

/* Whether a directory is a common run-time, which may be shown whatever file asks for it. */
static bool is_harmless(const struct search *s, const char *dir)
{
	_cleanup_(freep) char *below = join(dir, "x"), *root = NULL;

	root = below ? known_place(s, below, true) : NULL;
	return (root && strcmp(root, dir) == 0) || is_published(dir);
}

/* The nearest directory above the file that is a run-time of its own. */
static char *runtime_above(const struct search *s, const char *path)
{
	_cleanup_(freep) char *dir = parent_of(path);

	for (int i = 0; i < 3 && dir; i++) {
		char *up = parent_of(dir);

		free(dir);
		dir = up;
		if (!dir || !dir[1])
			return NULL;
		if (is_runtime(dir))
			return may_be_own(s, dir) ? TAKE_PTR(dir) : NULL;
	}
	return NULL;
}

/* Shows the node_modules that a file is below, and what npm -g puts beside it. */
static int show_node_modules(struct search *s, const char *path)
{
	_cleanup_(freep) char *modules = NULL, *bin = NULL, *prefix = NULL;
	const char *at = strstr(path, "/node_modules/");
	int r;

	modules = str_dup(str_make(path, (size_t)(at - path) + 13));
	if (!modules)
		return err_nomem(s->err);
	r = show(s, modules);
	if (r < 0 || at - path < 4 || strncmp(at - 4, "/lib", 4) != 0)
		return r;
	prefix = str_dup(str_make(path, (size_t)(at - path) - 4));
	bin = join(prefix, "bin");
	return bin && access(bin, F_OK) == 0 ? show(s, bin) : r;
}

static int add_file(struct search *s, const char *path, int depth);
static int add_named(struct search *s, const char *path, bool on_path, int depth);

/* Adds the Python that a virtual environment was made with, to which its bin/python leads. */
static int add_venv_home(struct search *s, const char *venv, int depth)
{
	_cleanup_(freep) char *python = join(venv, "bin/python");
	_cleanup_(freep) char *real = python ? follow(s, python) : NULL;
	int r;

	if (!exists_in(venv, "pyvenv.cfg"))
		return 0;
	s->wary |= fs_is_within_any(venv, s->q->writable);
	if (!real || !tool_is_program(real)) {
		r = err_set(s->err, E_NOT_FOUND,
			"%s: the Python that %s was made with is not there", s->asked, venv);
		err_hint(s->err, "make the environment anew");
		return r;
	}
	return is_there(s, real) ? 0 : add_file(s, real, depth + 1);
}

/* The directory of the tool to which a path belongs. Heap; NULL if there is none. */
static char *owner_of(const struct search *s, const char *path)
{
	char *root = known_place(s, path, false);

	return root ? root : runtime_above(s, path);
}

/* Shows a tool's own directory, and what that needs. */
static int show_root(struct search *s, const char *root, int depth)
{
	int r = show(s, root);

	if (r == 0 && tool_home_add_variable(s->q, root, &s->t->vars) < 0)
		r = err_nomem(s->err);
	return r < 0 ? r : add_venv_home(s, root, depth);
}

/* Shows what the file (without links) belongs to. */
static int show_owner(struct search *s, const char *real, int depth)
{
	_cleanup_(freep) char *root = owner_of(s, real);
	int r;

	if (!root && strstr(real, "/node_modules/"))
		return show_node_modules(s, real);
	if (!root)
		return show(s, real);
	if (!may_be_own(s, root)) {
		r = err_set(
			s->err, E_DENIED, "%s needs all of %s, which is not shown", s->asked, root);
		err_hint(s->err, "mount what it needs with --mount");
		return r;
	}
	return show_root(s, root, depth);
}

/* --- what a file asks for --- */

static int no_interpreter(struct search *s, const char *file, const struct tool_needs *needs)
{
	int r = err_set(s->err, E_NOT_FOUND, "%s: %s needs %s, which is not %s", s->asked, file,
		needs->interpreter, needs->by_name ? "on your PATH" : "there");

	err_hint(s->err, needs->script ? "install it, or put it on the PATH"
				       : "it was made for another system");
	return r;
}

static int add_needs(struct search *s, const char *file, int depth)
{
	struct tool_needs needs;
	_cleanup_(freep) char *interpreter = NULL, *found = NULL;
	int r = tool_read_needs(file, &needs);

	interpreter = needs.interpreter;
	s->wary |= fs_is_within_any(file, s->q->writable);
	/* A file that cannot be read or understood fails by itself when it is run. */
	if (r == -ENOMEM)
		return err_nomem(s->err);
	if (r < 0 || !interpreter)
		return 0;
	if (depth >= MAX_DEPTH) {
		r = err_set(s->err, E_NOT_FOUND, "%s: interpreters of interpreters without end",
			s->asked);
		err_hint(s->err, "look at the first line of %s", file);
		return r;
	}
	found = needs.by_name ? toolchain_find(s->q, interpreter, NULL)
			      : tool_path_outside(s->q, interpreter);
	if (!found && !needs.by_name)
		return err_nomem(s->err);
	/* The kernel starts nothing but programs. The author of the file may only want to see what
	 * lies there. */
	if (!found || !tool_is_program(found))
		return found && is_mounted(s->t, found) ? 0 : no_interpreter(s, file, &needs);
	if (needs.script)
		return add_named(s, found, needs.by_name, depth + 1);
	/* A loader has its libraries beside it. */
	return is_there(s, found) ? 0 : show_owner(s, found, depth + 1);
}

/* Adds a file (a path without links), what it belongs to, and what it needs. */
static int add_file(struct search *s, const char *path, int depth)
{
	int r = is_there(s, path) ? 0 : show_owner(s, path, depth);

	return r < 0 || fs_is_within(path, "/usr") ? r : add_needs(s, path, depth);
}

/* The path with its directory's links followed, but not its own. */
static char *settle_dir(struct search *s, const char *path)
{
	_cleanup_(freep) char *dir = parent_of(path), *real = dir ? follow(s, dir) : NULL;

	return real ? fs_join(real, strrchr(path, '/') + 1) : NULL;
}

/* Shows the environment or run-time in which the link itself lies: a Python finds its modules by
 * its own path. */
static int show_owner_of_link(struct search *s, const char *name, const char *real, int depth)
{
	_cleanup_(freep) char *root = NULL;

	if (strcmp(name, real) == 0 || is_there(s, name))
		return 0;
	root = owner_of(s, name);
	return !root || !may_be_own(s, root) ? 0 : show_root(s, root, depth);
}

/* Whether just this file was mounted. */
static bool is_alone(const struct toolchain *t, const char *real)
{
	for (size_t i = 0; i < t->mounts_n; i++)
		if (strcmp(t->mounts[i].source, real) == 0)
			return true;
	return false;
}

/* Shows the program. *ret_inside (borrowed) is its path inside: name, or real if name is not
 * shown. */
static int show_program(struct search *s, const char *name, const char *real, bool by_path,
	int depth, const char **ret_inside)
{
	int r = show_owner_of_link(s, name, real, depth);

	*ret_inside = name;
	s->wary |= fs_is_within_any(name, s->q->writable);
	if (r == 0)
		r = add_file(s, real, depth);
	if (r < 0 || is_there(s, name))
		return r;
	/* Mount the file at the link's path if that path is asked for, or if the file has no name
	 * of its own (".../versions/1.2.3"). */
	if (by_path ||
		(is_alone(s->t, real) && strcmp(strrchr(real, '/'), strrchr(name, '/')) != 0))
		return add_mount(s, real, name);
	*ret_inside = real;
	return 0;
}

/* Shows one program under the name by which it was found (after its version was chosen), and adds
 * its directory to PATH if it will be looked for there. */
static int add_settled(struct search *s, const char *name, bool on_path, int depth)
{
	_cleanup_(freep) char *real = follow(s, name), *dir = NULL;
	const char *inside = name;
	int r;

	if (!real)
		return err_sys(s->err, errno, "%s: %s", s->asked, name);
	if (!toolchain_is_shown(s->q, name) || !toolchain_is_shown(s->q, real))
		r = show_program(s, name, real, depth > 0 && !on_path, depth, &inside);
	else
		r = fs_is_within(real, "/usr") ? 0 : add_needs(s, real, depth);
	if (r < 0 || (inside == name && tool_is_on_path(str_from(name))))
		return r;
	if (depth == 0 && set_string(&s->t->program, inside, s->err) < 0)
		return -E_NO_MEMORY;
	if (!on_path || tool_is_on_path(str_from(inside)))
		return 0;
	dir = parent_of(inside);
	return dir ? add_dir(s, dir) : err_nomem(s->err);
}

/* The same for any absolute path. */
static int add_named(struct search *s, const char *path, bool on_path, int depth)
{
	_cleanup_(freep) char *name = settle_dir(s, path), *chosen = NULL;
	int r;

	if (!name)
		return err_sys(s->err, errno, "%s: %s", s->asked, path);
	if (toolchain_is_shown(s->q, name) && toolchain_is_shown(s->q, path)) {
		char link[8];

		/* Nearly always there is nothing more to do. */
		if (tool_is_on_path(str_from(name)) && readlink(path, link, sizeof(link)) < 0)
			return 0;
	}
	r = tool_home_resolve(s->q, name, &chosen, s->err);
	if (r < 0)
		return r;
	if (r > 0)
		return add_settled(s, name, on_path, depth);
	free(name);
	name = settle_dir(s, chosen);
	if (!name)
		return err_sys(s->err, errno, "%s: %s", s->asked, chosen);
	return add_settled(s, name, on_path, depth);
}

int toolchain_add(const struct toolchain_query *q, const char *name, struct toolchain *ret,
	struct cloche_err *err)
{
	struct search s = {.q = q, .t = ret, .asked = name, .err = err};
	_cleanup_(freep) char *path = NULL;

	free(ret->program);
	ret->program = NULL;
	if (name[0] == '/')
		path = tool_is_program(name) ? strdup(name) : NULL;
	else
		path = toolchain_find(q, name, NULL);
	return path ? add_named(&s, path, true, 0) : 1;
}

int toolchain_add_needs(const struct toolchain_query *q, const char *file, struct toolchain *ret,
	struct cloche_err *err)
{
	struct search s = {.q = q, .t = ret, .asked = file, .err = err};

	return add_needs(&s, file, 0);
}
