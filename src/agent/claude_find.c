/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/fd.h"
#include "base/str.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Theory of operation
 *
 * The program is found on the host and runs in the room, so the question is what must be mounted.
 * The npm package and the vendor's installer both lead to one native executable, which depends only
 * on libc: that one file is mounted. The installed file may be a chain of links. If the package's
 * install script did not run (npm's ignore-scripts), it is a small script that would start the
 * executable from a package beside it; then that executable is looked for directly. A script
 * without such a package is mounted with its package directory, or alone if it has none.
 *
 * Nothing found here is run on the host. But what is mounted is shown to the room, and a room may
 * have written the node_modules of its workspace, so what is found in one must lie in the directory
 * that has it. */

#define NPM_BIN "/node_modules/.bin"

static const char *const in_home[] = {
	".local/bin/claude",
	".claude/local/node_modules/.bin/claude",
	".npm-global/bin/claude",
	"node_modules/.bin/claude",
};

static const char *const fixed_places[] = {
	"/usr/local/bin/claude", "/usr/bin/claude", "/opt/claude/claude"};

enum kind {
	KIND_UNUSABLE,
	KIND_ELF,
	KIND_SCRIPT,
};

static enum kind kind_of(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char magic[4];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return KIND_UNUSABLE;
	n = pread(fd, magic, sizeof(magic), 0);
	if (n == 4 && memcmp(magic, "\177ELF", 4) == 0)
		return KIND_ELF;
	return n >= 2 && memcmp(magic, "#!", 2) == 0 ? KIND_SCRIPT : KIND_UNUSABLE;
}

/* Return the directory of the installed package that `path` is in, or NULL. Only below a
 * node_modules: for any other script, the nearest package.json may be in the user's home. */
static char *package_root(const char *path)
{
	_cleanup_(freep) char *dir = strdup(path);
	char *slash;

	while (dir && (slash = strrchr(dir, '/')) && slash != dir) {
		_cleanup_(freep) char *file = NULL;

		*slash = '\0';
		file = fs_join(dir, "package.json");
		if (file && access(file, F_OK) == 0)
			return strstr(dir, "/node_modules/") ? TAKE_PTR(dir) : NULL;
	}
	return NULL;
}

/* Return the executable for this machine from one of the package's own optional dependencies. */
static char *native_of(const char *root)
{
	static const char *const scopes[] = {"../", "node_modules/@anthropic-ai/"};
	static const char *const libcs[] = {"", "-musl"};
	struct utsname un;
	const char *cpu = uname(&un) == 0 && strcmp(un.machine, "aarch64") == 0 ? "arm64" : "x64";

	for (size_t i = 0; i < ARRAY_SIZE(scopes) * ARRAY_SIZE(libcs); i++) {
		_cleanup_(freep) char *path = NULL;

		if (asprintf(&path, "%s/%sclaude-code-linux-%s%s/claude", root, scopes[i / 2], cpu,
			    libcs[i % 2]) < 0) {
			path = NULL;
			return NULL;
		}
		if (kind_of(path) == KIND_ELF)
			return realpath(path, NULL);
	}
	return NULL;
}

/* Mount `source` as AGENT_ROOM_DIR/name and run it, or `below` in it. */
static int set_program(struct agent_program *ret, const char *host, const char *source,
	const char *name, const char *below, struct cloche_err *err)
{
	_cleanup_(agent_program_donep) struct agent_program p = {.path = NULL};

	p.host = strdup(host);
	p.source = strdup(source);
	if (asprintf(&p.destination, AGENT_ROOM_DIR "/%s", name) < 0)
		p.destination = NULL;
	if (p.destination && asprintf(&p.path, "%s%s", p.destination, below) < 0)
		p.path = NULL;
	if (!p.host || !p.source || !p.destination || !p.path)
		return err_nomem(err);
	*ret = p;
	p = (struct agent_program){.path = NULL};
	return 0;
}

static int set_script(struct agent_program *ret, const char *real, struct cloche_err *err)
{
	_cleanup_(freep) char *root = package_root(real), *native = NULL;

	if (!root)
		return set_program(ret, real, real, "claude", "", err);
	native = native_of(root);
	if (native)
		return set_program(ret, native, native, "claude", "", err);
	return set_program(ret, real, root, "package", real + strlen(root), err);
}

/* Return 0, 1 if there is nothing usable at that path, or an error. */
static int try_file(const char *path, struct agent_program *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *real = realpath(path, NULL);

	if (!real)
		return errno == ENOMEM ? err_nomem(err) : 1;
	switch (kind_of(real)) {
	case KIND_ELF:
		return set_program(ret, real, real, "claude", "", err);
	case KIND_SCRIPT:
		return set_script(ret, real, err);
	case KIND_UNUSABLE:
	default:
		return 1;
	}
}

/* Refuse a program that was found in a node_modules and lies outside of the directory around it. */
static int check_tree(const char *path, const struct agent_program *p, struct cloche_err *err)
{
	struct str whole = str_from(path), end = STR(NPM_BIN "/claude");
	_cleanup_(freep) char *dir = NULL, *real = NULL;

	if (!str_ends(whole, end) || whole.n == end.n) /* everything lies in / */
		return 0;
	dir = str_dup(str_prefix(whole, whole.n - end.n));
	real = dir ? realpath(dir, NULL) : NULL;
	if (!real)
		return !dir || errno == ENOMEM ? err_nomem(err)
					       : err_sys(err, errno, "find %s", dir);
	if (fs_is_within(p->source, real))
		return 0;
	err_set(err, E_DENIED, "%s leads out of %s, to %s", path, real, p->source);
	err_hint(err, "a sandbox may have written it: remove it, or name the agent's program with "
		      "--agent-binary");
	return -E_DENIED;
}

static int try_in(
	const char *dir, const char *file, struct agent_program *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *path = fs_join(dir, file);
	_cleanup_(agent_program_donep) struct agent_program p = {.path = NULL};
	int r = path ? try_file(path, &p, err) : err_nomem(err);

	if (r == 0)
		r = check_tree(path, &p, err);
	if (r == 0) {
		*ret = p;
		p = (struct agent_program){.path = NULL};
	}
	return r;
}

/* Try each directory of $PATH, except empty or relative ones, which depend on the current
 * directory. */
static int try_path(struct str path, struct agent_program *ret, struct cloche_err *err)
{
	int r = 1;

	while (r > 0 && path.n > 0) {
		_cleanup_(freep) char *dir = str_dup(str_next(&path, ':'));

		if (!dir)
			return err_nomem(err);
		if (dir[0] == '/')
			r = try_in(dir, "claude", ret, err);
	}
	return r;
}

/* Try node_modules/.bin in a directory and those above it, as npm does. */
static int try_upwards(const char *cwd, struct agent_program *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *dir = strdup(cwd);
	int r = 1;

	if (!dir)
		return err_nomem(err);
	while (r > 0 && dir[0] == '/') {
		char *slash = strrchr(dir, '/');

		r = try_in(dir, "node_modules/.bin/claude", ret, err);
		if (slash == dir)
			break;
		*slash = '\0';
	}
	return r;
}

static int search(const struct agent_search *s, struct agent_program *ret, struct cloche_err *err)
{
	int r = try_path(str_from(s->path), ret, err);

	for (size_t i = 0; r > 0 && s->home && i < ARRAY_SIZE(in_home); i++)
		r = try_in(s->home, in_home[i], ret, err);
	for (size_t i = 0; r > 0 && i < ARRAY_SIZE(fixed_places); i++)
		r = try_file(fixed_places[i], ret, err);
	if (r > 0 && s->cwd)
		r = try_upwards(s->cwd, ret, err);
	return r;
}

int claude_code_find(
	const struct agent_search *s, struct agent_program *ret, struct cloche_err *err)
{
	int r;

	if (s->binary) {
		r = try_file(s->binary, ret, err);
		if (r > 0)
			r = err_set(err, E_NOT_FOUND,
				"%s is not an executable or a script that can be run", s->binary);
		return r;
	}
	r = search(s, ret, err);
	if (r > 0) {
		r = err_set(err, E_NOT_FOUND, "Claude Code was not found on this machine");
		err_hint(err, "install it with \"npm install -g @anthropic-ai/claude-code\", "
			      "or name its program with --agent-binary");
	}
	return r;
}
