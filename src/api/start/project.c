/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: whoever starts cloche in a directory means the project in which it lies.
 * What a search finds is shown only if nobody has to name it: no credentials, no home, nothing of
 * the system. What is found in the project itself is a proposal (workspace/project.h says what of
 * it counts). */
#include "workspace/project.h"
#include "base/fd.h"
#include "config/always.h"
#include "fs/fs.h"
#include "jail/source.h"
#include "job/job.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

struct projecting {
	cloche_sandbox *sb;
	struct project found;
	char cwd[PATH_MAX];
	int dir; /* of cwd, or of the workspace that was named */
	cloche_warning_fn fn;
	void *user;
};

__attribute__((format(printf, 2, 3))) static void project_say(
	const struct projecting *p, const char *format, ...)
{
	char text[3 * PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (p->fn)
		job_tell_text(p->fn, text, p->user);
}

static bool project_is_home(const char *dir)
{
	_cleanup_(freep) char *home = fs_home(), *real = home ? realpath(home, NULL) : NULL;
	const struct passwd *account = getpwuid(getuid());
	_cleanup_(freep) char *own = account ? realpath(account->pw_dir, NULL) : NULL;
	const char *const homes[] = {real, own};

	for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
		if (homes[i] && homes[i][1] && fs_is_within(homes[i], dir))
			return true;
	return false;
}

/* Whether all of it belongs to the system, or to everybody. */
static bool project_is_systems(const char *dir)
{
	static const char *const whole[] = {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
		"/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"};
	static const char *const places[] = {"/", "/home", "/media", "/mnt", "/opt", "/root",
		"/run", "/srv", "/tmp", "/usr/src", "/usr/local/src", "/var", "/var/lib",
		"/var/tmp"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (strcmp(dir, places[i]) == 0)
			return true;
	if (fs_is_within(dir, "/usr/src") || fs_is_within(dir, "/usr/local/src") ||
		fs_is_within(dir, "/dev/shm"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (fs_is_within(dir, whole[i]))
			return true;
	return false;
}

/* Whether agents keep their logins and their state there. */
static bool project_is_agents(const char *dir)
{
	static const char *const names[] = {".claude", ".codex", ".gemini", ".qwen", ".config",
		".config/opencode", ".local", ".local/share", ".local/share/opencode", ".cache"};
	_cleanup_(freep) char *home = fs_home(), *real = home ? realpath(home, NULL) : NULL;

	for (size_t i = 0; real && i < ARRAY_SIZE(names); i++) {
		_cleanup_(freep) char *place = fs_join(real, names[i]);

		if (place && strcmp(dir, place) == 0)
			return true;
	}
	return false;
}

/* Return why a directory is no workspace that nobody has named, or NULL. */
static const char *project_refusal(const char *dir)
{
	_cleanup_(freep) char *home = fs_home();

	if (project_is_home(dir))
		return "which holds your home";
	if (project_is_systems(dir))
		return "which is the system's";
	if (source_judge_found(dir, home, NULL) < 0)
		return "which holds credentials";
	return project_is_agents(dir) ? "which holds settings of yours" : NULL;
}

/* Choose the workspace: the top of the repository, or this directory, or none. */
static int project_choose(struct projecting *p, struct cloche_err *err)
{
	struct project *f = &p->found;
	const char *why = project_refusal(p->cwd), *why_top;

	if (why) {
		project_say(p,
			"not mounting %s, %s, as the workspace; use --workspace DIR (or "
			"--no-workspace, to hide this message)",
			p->cwd, why);
		return 0;
	}
	project_find(p->dir, p->cwd, true, f);
	why_top = f->top[0] && strcmp(f->top, p->cwd) != 0 ? project_refusal(f->top) : NULL;
	if (f->foreign && strcmp(f->git, p->cwd) != 0)
		project_say(p,
			"the git repository around this directory, %s, belongs to another user; "
			"the workspace is this directory alone",
			f->git);
	if (why_top)
		project_say(p,
			"the git repository around this directory is not shown: it is %s, %s",
			f->top, why_top);
	if (!f->top[0] || why_top) {
		project_done(f);
		snprintf(f->top, sizeof(f->top), "%s", p->cwd);
		return sandbox_set_workspace(p->sb, ".", err);
	}
	return sandbox_put_workspace(p->sb, TAKE_FD(f->top_fd), f->top, false, err);
}

/* Say what is shown that is more than this directory, in one line. */
static void project_tell(const struct projecting *p, bool wider, bool linked)
{
	const struct project *f = &p->found;

	if (f->kind == PROJECT_GIT_STRANGE)
		project_say(p,
			"git will not work inside: %s/.git leads to %s, which does not name this "
			"directory in turn; to show it: --mount DIR",
			f->top, f->git[0] ? f->git : "no git directory");
	else if (linked)
		project_say(p, "the workspace is %s, and its repository is shown, too: %s", f->top,
			f->git);
	else if (wider)
		project_say(p,
			"the workspace is %s, the git repository around this directory; for this "
			"directory alone: --workspace .",
			f->top);
}

/* Show the git directory of a worktree or submodule, where it is on the host. */
static int project_show_git(struct projecting *p, bool *ret_shown, struct cloche_err *err)
{
	const struct room_mount m = {.source = p->found.git, .target = p->found.git, .found = true};
	const struct room_mount as = {.also = p->found.git};

	*ret_shown = false;
	if (p->found.kind != PROJECT_GIT_LINKED && p->found.kind != PROJECT_GIT_MODULE)
		return 0;
	if (!sandbox_second_path(p->sb, &p->sb->mounts[0]) || !sandbox_second_path(p->sb, &as) ||
		project_refusal(p->found.git)) {
		project_say(p,
			"git will not work inside: its repository %s can only be shown if it and "
			"the workspace are at their own paths",
			p->found.git);
		return 0;
	}
	for (size_t i = 0; i < p->sb->mounts_n; i++)
		if (strcmp(p->sb->mounts[i].source, p->sb->mounts[i].target) == 0 &&
			fs_is_within(m.source, p->sb->mounts[i].source))
			return 0;
	*ret_shown = true;
	return sandbox_add_mount(p->sb, TAKE_FD(p->found.git_fd), &m, err);
}

/* Begin where the caller is, by the path that the host has for it, if the room has it too. */
static int project_stay(struct projecting *p, struct cloche_err *err)
{
	const cloche_sandbox *sb = p->sb;
	const char *top = sandbox_second_path(sb, &sb->mounts[0]);
	const char *below = fs_below(p->cwd, sb->workspace);
	_cleanup_(freep) char *dir = NULL;

	if (!top)
		top = sb->mounts[0].target;
	dir = below && below[0] ? fs_join(top, below) : strdup(top);
	return dir ? sandbox_set_workdir(p->sb, dir, err) : err_nomem(err);
}

/* What the user allows always here, beside what is allowed anyway. */
static int project_allow(const struct projecting *p, struct cloche_err *err)
{
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *list = NULL;
	_cleanup_(freep) char *file = NULL;
	int r = always_load(p->sb->workspace, &list, &file, err);

	if (r < 0 || !list)
		return r;
	for (size_t i = 0; i < list->sources_n; i++)
		sandbox_tell_setting(
			p->sb, &(cloche_setting){.key = "allow",
				       .value = list->sources[i].name ? list->sources[i].name
								      : list->sources[i].text,
				       .file = file,
				       .adds = true});
	return cloche_sandbox_add_allowlist(p->sb, list, err);
}

int cloche_sandbox_use_project(
	cloche_sandbox *sb, bool stay, cloche_warning_fn fn, void *user, cloche_err *err)
{
	struct projecting p = {.sb = sb, .found = PROJECT_NULL, .dir = -1, .fn = fn, .user = user};
	struct cloche_err own = CLOCHE_ERR_INIT;
	bool named = sb->workspace != NULL, shown = false;
	_cleanup_fd_ int dir =
		named ? openat(sb->mounts[0].fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)
		      : open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	err = err ? err : &own;
	if (dir < 0 || (!getcwd(p.cwd, sizeof(p.cwd)) && !named)) {
		r = err_set(err, E_USAGE, "the current directory is gone");
		err_hint(err, "use --workspace DIR or --no-workspace");
		return r;
	}
	p.dir = dir;
	if (named)
		project_find(dir, sb->workspace, false, &p.found);
	else
		r = project_choose(&p, err);
	if (r == 0 && sb->workspace) {
		r = project_show_git(&p, &shown, err);
		project_tell(&p, !named && strcmp(sb->workspace, p.cwd) != 0, shown);
	}
	if (r == 0 && sb->workspace && sb->always)
		r = project_allow(&p, err);
	project_done(&p.found);
	return r == 0 && sb->workspace && stay && !sb->workdir ? project_stay(&p, err) : r;
}
