/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the results of a search (toolchain.h) become read-only mounts of the sandbox
 * and directories at the front of its PATH. If a link later replaces a file that was found, it is
 * not followed. */
#include "base/fd.h"
#include "base/program.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* A query and the data that it borrows. */
struct asking {
	struct toolchain_query q;
	char *home, *cwd, **shown, **writable;
};

static void asking_done(struct asking *a)
{
	free(a->home);
	free(a->cwd);
	strv_free(a->shown);
	strv_free(a->writable);
}

static int ask(const cloche_sandbox *sb, struct asking *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *home = fs_home();

	*ret = (struct asking){.home = home ? realpath(home, NULL) : NULL, .cwd = getcwd(NULL, 0)};
	for (size_t i = 0; i < sb->mounts_n; i++)
		if ((strcmp(sb->mounts[i].source, sb->mounts[i].target) == 0 ||
			    sandbox_second_path(sb, &sb->mounts[i])) &&
			strv_add(&ret->shown, str_from(sb->mounts[i].source)) < 0)
			return err_nomem(err);
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		char real[PATH_MAX];

		if (!m->ro && !m->guard && fd_path(m->fd, real) == 0 &&
			strv_add(&ret->writable, str_from(real)) < 0)
			return err_nomem(err);
	}
	ret->q = (struct toolchain_query){.path = secure_getenv("PATH"),
		.home = ret->home,
		.cwd = ret->cwd,
		.env = program_is_elevated() ? NULL : environ,
		.shown = ret->shown,
		.writable = ret->writable,
		.workspace = sb->workspace,
		.workspace_inside = sb->workspace ? sb->mounts[0].target : NULL};
	return 0;
}

int sandbox_add_path(cloche_sandbox *sb, const char *dir, struct cloche_err *err)
{
	char *joined;

	if (!sb->tool_path)
		return set_string(&sb->tool_path, dir, err);
	if (asprintf(&joined, "%s:%s", sb->tool_path, dir) < 0)
		return err_nomem(err);
	free(sb->tool_path);
	sb->tool_path = joined;
	return 0;
}

/* What the user set stays. */
static int add_variable(cloche_sandbox *sb, const char *variable, struct cloche_err *err)
{
	_cleanup_(freep) char *name = str_dup(str_make(variable, strcspn(variable, "=")));

	if (!name)
		return err_nomem(err);
	return strv_env_get(sb->env, name)
		       ? 0
		       : cloche_sandbox_set_env(sb, name, strchr(variable, '=') + 1, err);
}

static int apply(cloche_sandbox *sb, const struct toolchain *t, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->mounts_n; i++)
		r = sandbox_add_mount(sb, fs_open_beneath(AT_FDCWD, t->mounts[i].source, O_PATH),
			&(struct room_mount){.source = t->mounts[i].source,
				.target = t->mounts[i].target,
				.ro = true,
				.found = true},
			err);
	for (char *const *d = t->dirs; r == 0 && d && *d; d++)
		r = sandbox_add_path(sb, *d, err);
	for (char *const *v = t->vars; r == 0 && v && *v; v++)
		r = add_variable(sb, *v, err);
	for (char *const *note = t->notes; r == 0 && note && *note; note++)
		if (strv_add(&sb->tools, str_from(*note)) < 0)
			r = err_nomem(err);
	return r;
}

/* Add a program, or with needs_only only what an existing program needs. *ret_program (may be NULL)
 * is its path, or NULL. Return 0, or 1 if there is no such program. */
static int add(cloche_sandbox *sb, const char *name, bool needs_only, char **ret_program,
	struct cloche_err *err)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;
	struct asking a;
	int r = ask(sb, &a, err);

	if (r == 0)
		r = needs_only ? toolchain_add_needs(&a.q, name, &t, err)
			       : toolchain_add(&a.q, name, &t, err);
	asking_done(&a);
	if (r == 0)
		r = apply(sb, &t, err);
	if (r == 0 && ret_program)
		*ret_program = TAKE_PTR(t.program);
	return r;
}

int sandbox_add_needs(cloche_sandbox *sb, const char *file, struct cloche_err *err)
{
	return sb->root == ROOM_ROOT_HOST ? add(sb, file, true, NULL, err) : 0;
}

int sandbox_add_tool(cloche_sandbox *sb, const char *tool, cloche_err *err)
{
	_cleanup_(freep) char *path = strchr(tool, '/') ? fs_absolute(tool) : strdup(tool);
	int r;

	if (!path)
		return err_nomem(err);
	r = add(sb, path, false, NULL, err);
	if (r <= 0)
		return r;
	if (strcmp(tool, "nvm") == 0 || strcmp(tool, "sdk") == 0) {
		r = err_set(err, E_NOT_FOUND,
			"tool %s: it is a function of your shell, which is of no use inside", tool);
		err_hint(err, "name the program whose version it chose, such as --tool %s",
			tool[0] == 'n' ? "node" : "java");
	} else if (strchr(tool, '/')) {
		r = err_set(err, E_NOT_FOUND, "tool %s: there is no such program", tool);
		err_hint(err, "it has to be a file that may be executed");
	} else {
		r = err_set(err, E_NOT_FOUND, "tool %s: it is not on your PATH", tool);
		err_hint(err, "name it by its path");
	}
	return r;
}

static bool is_second(const cloche_sandbox *sb, const char *path)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const char *also = sandbox_second_path(sb, &sb->mounts[i]);

		if (also && fs_is_within(path, also))
			return true;
	}
	return false;
}

/* Return whether a mount provides the path in the room, whatever the host has there. */
static bool is_target(const cloche_sandbox *sb, const char *path)
{
	for (size_t i = 0; i < sb->mounts_n; i++)
		if (fs_is_within(path, sb->mounts[i].target))
			return true;
	return false;
}

/* Return whether the working directory inside is dir of the host, by way of the workspace. */
static bool is_workdir(const cloche_sandbox *sb, const char *dir)
{
	_cleanup_(freep) char *inside = sandbox_path_inside(sb, sandbox_workdir(sb)), *there = NULL;
	const char *below = inside && sb->workspace ? fs_below(inside, sb->mounts[0].target) : NULL;

	there = below && below[0] ? fs_join(sb->workspace, below) : NULL;
	return below && strcmp(dir, there ? there : sb->workspace) == 0;
}

/* For a command that is found in the workspace inside, too: show what it needs, and the target if
 * it is a link out of the workspace. */
static int add_in_workspace(cloche_sandbox *sb, const char *command, struct cloche_err *err)
{
	_cleanup_(freep) char *named = fs_absolute(command);
	_cleanup_fd_ int fd = -1;
	char real[PATH_MAX];
	bool leaves = false;
	int r;

	fd = named ? hostpath_follow(named, NULL, real, &leaves) : -1;
	if (fd < 0)
		return 0;
	/* Use its own name, so that the link's directory shows who may have made the link. */
	leaves = !fs_is_within(real, sb->workspace);
	r = add(sb, leaves ? named : real, !leaves, NULL, err);
	/* What it needs may be in the changes that were kept. */
	if (r == -E_NOT_FOUND && sb->keep_changes) {
		err_clear(err);
		return 0;
	}
	return r > 0 ? 0 : r;
}

/* For "./x" and the like: the command is found if the current directory is the working directory
 * inside. */
static int add_relative(cloche_sandbox *sb, const char *command, struct cloche_err *err)
{
	_cleanup_(freep) char *cwd = getcwd(NULL, 0);

	return cwd && is_workdir(sb, cwd) ? add_in_workspace(sb, command, err) : 0;
}

/* Return whether this is a program of the system and no link, as nearly every command is. This is
 * checked first, as it is then the only cost for the start of a command. */
static bool is_systems(const char *command)
{
	const struct toolchain_query q = {.path = secure_getenv("PATH")};
	_cleanup_(freep) char *found = NULL;
	char link[8];

	if (command[0] != '/') {
		found = toolchain_find(&q, command, NULL);
		command = found ? found : "";
	}
	return tool_is_on_path(str_from(command)) && readlink(command, link, sizeof(link)) < 0 &&
	       errno == EINVAL;
}

int cloche_sandbox_add_command(
	cloche_sandbox *sb, const char *command, const char **ret_program, cloche_err *err)
{
	int r;

	*ret_program = command;
	/* Another root cannot use the host's programs, and another machine has its own. */
	if (sb->root != ROOM_ROOT_HOST || sandbox_is_elsewhere(sb) || !command[0])
		return 0;
	if (command[0] != '/' && strchr(command, '/'))
		return add_relative(sb, command, err);
	if (command[0] == '/' && is_second(sb, command))
		return add_in_workspace(sb, command, err);
	if ((command[0] == '/' && is_target(sb, command)) || is_systems(command))
		return 0;
	free(sb->program);
	sb->program = NULL;
	r = add(sb, command, false, &sb->program, err);
	if (r == 0 && sb->program)
		*ret_program = sb->program;
	return r > 0 ? 0 : r;
}

const char *cloche_sandbox_tool_note(const cloche_sandbox *sb, size_t i)
{
	return i < strv_count(sb->tools) ? sb->tools[i] : NULL;
}
