/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SANDBOX_H
#define CLOCHE_SANDBOX_H
/* The configuration of a sandbox: what can be seen, reached and used inside it. Build it with
 * setters, then pass it to cloche_run_new() or cloche_task_new(), which copy it; it can be used
 * again.
 *
 * Strings are copied. Functions that return int return 0 or a negated error code and describe the
 * failure in err (which may be NULL). A configuration may be used by one thread at a time.
 *
 * In a program that has more rights than its caller (set-uid, set-gid, capabilities of its file) no
 * environment variable names a program, a file or a credential to the library, and it executes only
 * what is in the directories where it was installed, and in the system's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allowlist.h"
#include "error.h"
#include "secrets.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_sandbox cloche_sandbox;

/* Receives a warning for the user, one sentence ("cpu limit is not enforced here: ..."). */
typedef void (*cloche_warning_fn)(const char *text, void *user);

/* Return a configuration that grants nothing: the host's system read-only, no mounts, no network, a
 * basic environment. NULL if out of memory. */
CLOCHE_API cloche_sandbox *cloche_sandbox_new(void);
/* Free the configuration. NULL is allowed. */
CLOCHE_API void cloche_sandbox_free(cloche_sandbox *sb);

/* A command line option, which is also a setting of a configuration. All strings are static. */
typedef struct cloche_option {
	const char *name;     /* as in --name */
	const char *argument; /* the argument's name in the help; NULL: takes none */
	const char *help;     /* "\n" begins a new line */
	const char *commands; /* which commands have it, in words; NULL: all that make a sandbox */
	char letter;          /* as in -x; 0: none */
} cloche_option;

/* Return option i, in the order of the help, or NULL after the last. May be called by any
 * thread. */
CLOCHE_API const cloche_option *cloche_sandbox_option(size_t i);

/* Set an option by its name, as on the command line (cloche-run(1)): the value is ignored if the
 * option takes none. Options that can be repeated add to earlier values. NULL takes away a limit or
 * a time, and keep-changes, dns, offline, place, runtime, venv, package-manager, record and
 * record-sync. CLOCHE_E_USAGE: the name is unknown, or the value is not right. Some options need
 * more to be said:
 *
 *   provider      "auto" (native; if it does not work, podman, docker or landlock), "native",
 *                 "podman", "docker", "nerdctl", "ssh", "kubernetes", "srt" (native, for
 *                 cloche/srt.h), "landlock" (without namespaces, by Landlock and filters alone) or
 *                 "subprocess" (none, local), which is not a room: the command runs on this
 *                 machine, and only Landlock limits which files it can access. "auto+subprocess" is
 *                 auto, with subprocess if nothing else works. Other names are programs of other
 *                 providers: the NAME of cloche-provider-NAME in a directory of
 *                 $CLOCHE_PROVIDER_PATH, or an absolute path (docs/design/provider-protocol.md;
 *                 docs/design/providers.md says what each provider can do).
 *   place         where "ssh" makes the room: what ssh(1) takes as its destination; for
 *                 "kubernetes", CONTEXT or CONTEXT/NAMESPACE of kubectl; for "e2b" and
 *                 "cloudflare", the service, which has to be named; for other
 *                 providers in their own words, at most 512 bytes. One without places refuses it.
 *   root          "host", the path of a directory, or "image:NAME" for a stored image
 *                 (cloche/image.h; CLOCHE_E_NOT_FOUND). An image's variables, working directory and
 *                 volumes apply unless others are set. cloche_run_new() puts the image's entrypoint
 *                 before the command, uses the image's command if none is given, and runs it as the
 *                 image's user.
 *   pull          when root gets an image from its registry as cloche_image_pull() does, which may
 *                 take minutes: "missing" (if it is not stored), "always" or "never" (the default
 *                 for a handle; that of the command line and of AGENTGATE_SANDBOX_IMAGE is
 *                 "missing"). Set it before root. An id is never pulled, nor what could be one.
 *   keep-changes  a directory, made if missing, in which changes to the root (everything but /tmp
 *                 and mounts) are kept. It must be empty, or hold the changes of an earlier sandbox
 *                 with the same root, which are then continued. Only one sandbox at a time can use
 *                 it, and no writable mount may be inside it or contain it. cloche_diff_kept()
 *                 lists its contents. By default changes are discarded, and a one-shot run sees the
 *                 host read-only below /usr.
 *   tool          a program of the caller, mounted with what it needs read-only at the same paths
 *                 inside, and its directory first in PATH there, for tools installed outside the
 *                 system's directories (nvm, pyenv, npm -g, pipx, cargo, ~/.local/bin, /opt, ...):
 *                 a path, or a name that is searched for on the caller's PATH. Of the home
 *                 directory only the tool's own directory becomes visible, and never anything that
 *                 holds credentials. CLOCHE_E_NOT_FOUND if the tool or its interpreter is missing.
 *   workspace     a directory, mounted read-write at /workspace, and at its own path as well, so
 *                 that what names files by absolute paths (worktrees of git, environments of
 *                 Python, ...) is right on both sides; /workspace is the working directory.
 *                 "DIR:/workspace" hides the path, and so does a root that needs something of its
 *                 own there. In the workspace, and in every writable mount, files that the host
 *                 would run or obey without being asked (hooks and configurations of git, settings
 *                 of editors, ...: docs/design/workspace.md) are read-only if a bounded search
 *                 finds them when the sandbox is made. New ones are found when it ends
 *                 (cloche/planted.h).
 *   allow-write   one such path that stays writable: relative to the workspace, or absolute, as on
 *                 the host or as inside. New files there are then reported when the sandbox ends,
 *                 but not set aside. Up to 64 times. Making the sandbox fails if the path is not in
 *                 a writable place.
 *   label         KEY=VALUE of at most 512 bytes; KEY has the form of a name, VALUE is any UTF-8
 *                 text. A label replaces an earlier one with the same key.
 *   ttl, runtime, venv, package-manager, label, record, record-sync
 *                 for long-lived sandboxes (cloche/instance.h)
 *   venv          cloche_instance_create() makes the environment if it does not exist. Every
 *                 command has its bin first in PATH, and VIRTUAL_ENV set.
 *   output-limit  bytes of each of stdout and stderr; in a sandbox that stays, the end of both in
 *                 the log of each command, at least 512 KiB.
 *   limits        "best-effort": a limit that cannot be enforced here is a warning. "strict" (the
 *                 default, except for the default limits of a manager): it is an error.
 *   nested        removes a layer of protection: see cloche-run(1).
 *   record-sync   killing a process never loses data, whatever is set.
 *   offline       no connection is made and no policy is applied. Secrets are surrogates as usual;
 *                 secrets that are added to sb later, by name or by a configuration file, need no
 *                 value. */
CLOCHE_API int cloche_sandbox_set(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err);

/* Let no file set an option that has one value: it is set otherwise, before or after. Options that
 * can be repeated are left as they are. CLOCHE_E_USAGE: the name is unknown. */
CLOCHE_API int cloche_sandbox_settle(cloche_sandbox *sb, const char *name, cloche_err *err);

/* Something that was set. The strings are valid during the call. */
typedef struct cloche_setting {
	const char *key;   /* as in a configuration file: "mounts", "limits.memory", "env.CI" */
	const char *value; /* in words; of a secret only where it comes from */
	const char *file;  /* that says so; NULL: cloche_sandbox_set() or _use_project() */
	size_t line;       /* there; 0: all of it */
	bool adds;         /* earlier values of the key hold, too; else this one replaces them */
} cloche_setting;
typedef void (*cloche_setting_fn)(const cloche_setting *setting, void *user);

/* Call fn for what is set from now on by name, by files and by cloche_sandbox_use_project(), in
 * this order. NULL: no more. */
CLOCHE_API void cloche_sandbox_on_setting(cloche_sandbox *sb, cloche_setting_fn fn, void *user);

/* Change the provider from "auto" to "auto+subprocess"; leave any other provider as it is. */
CLOCHE_API int cloche_sandbox_allow_unsandboxed(cloche_sandbox *sb, cloche_err *err);

/* Register the program at an absolute path as a provider with this name, for this process only,
 * from now on. name is 1 to 32 of [a-z0-9-] and not a built-in provider. Both are copied. Call it
 * from one thread at a time, and not while sandboxes are being started. CLOCHE_E_USAGE,
 * CLOCHE_E_LIMIT (more than 16). */
CLOCHE_API int cloche_provider_register(const char *name, const char *path, cloche_err *err);

/* Receives the current step of a pull and the number of bytes it covers, on the calling thread.
 * Returns false to abort it: CLOCHE_E_CANCELLED. */
typedef bool (*cloche_pull_fn)(const char *step, uint64_t bytes, void *user);
CLOCHE_API void cloche_sandbox_on_pull(cloche_sandbox *sb, cloche_pull_fn fn, void *user);

/* Do what the option "tool" does for a command that is about to be run, unless it exists inside
 * anyway. Set root, workspace and mounts first. *ret_program (borrowed until the next call) is what
 * to run: command itself, or the path inside of the program that the caller would run by that name.
 * A command that is not found is returned unchanged, because it may exist inside. */
CLOCHE_API int cloche_sandbox_add_command(
	cloche_sandbox *sb, const char *command, const char **ret_program, cloche_err *err);

/* What was mounted for tools and commands, one line for display each. i counts from 0; NULL after
 * the last. */
CLOCHE_API const char *cloche_sandbox_tool_note(const cloche_sandbox *sb, size_t i);

/* Mount a file or directory of the host. It is opened now, and stays open as long as the handle
 * lives: what is mounted later is this file, even if another one has its name by then, and a start
 * fails if it was removed. So it is with the workspace and the root. destination NULL: at the same
 * path as source, as it is written: absolute, each ".." removed with the name before it, links on
 * it not followed. */
CLOCHE_API int cloche_sandbox_add_mount(cloche_sandbox *sb, const char *source,
	const char *destination, bool read_only, cloche_err *err);

/* Do what "cloche run" does with the current directory. If no workspace was set, take the git
 * repository around the current directory; or that directory alone, if there is none of this user;
 * or no workspace, if it holds a home, credentials, or a part of the system. If the workspace is a
 * linked worktree or a submodule of git's, mount its git directory, too, at its own path. With
 * stay, make the current directory the working directory, unless one was set or the workspace does
 * not have it. fn (may be NULL) gets a sentence for the user if more is shown than the directory,
 * or not even that. If the user's own file was loaded before, add what the user allows always for
 * this workspace (CLOCHE_ANSWER_ALWAYS in cloche/watch.h). Set the root before. */
CLOCHE_API int cloche_sandbox_use_project(
	cloche_sandbox *sb, bool stay, cloche_warning_fn fn, void *user, cloche_err *err);

/* Set an environment variable inside. None of the caller's environment is passed on. */
CLOCHE_API int cloche_sandbox_set_env(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err);

/* Set what may be reached. Copied. */
CLOCHE_API int cloche_sandbox_set_allowlist(
	cloche_sandbox *sb, const cloche_allowlist *list, cloche_err *err);

/* Add to what may be reached. Copied. */
CLOCHE_API int cloche_sandbox_add_allowlist(
	cloche_sandbox *sb, const cloche_allowlist *list, cloche_err *err);

/* Add credentials that can be used inside without being known there. They are copied into locked
 * memory, and the environment inside holds surrogates instead. A secret replaces an earlier one of
 * the same name. */
CLOCHE_API int cloche_sandbox_add_secrets(
	cloche_sandbox *sb, const cloche_secrets *secrets, cloche_err *err);

/* Write the plain network log to fd as well, with "[net] " before each line. fd is borrowed until
 * the run ends; -1 turns it off. */
CLOCHE_API void cloche_sandbox_set_network_log_fd(cloche_sandbox *sb, int fd);

/* Parse a duration ("500ms", "30s", "1.5m", "2h", "30": seconds) into milliseconds. */
CLOCHE_API int cloche_parse_duration(const char *text, uint64_t *ret_milliseconds, cloche_err *err);

/* Read the AGENTGATE_SANDBOX_ variables of the caller's environment (cloche(1)) into sb. given (may
 * be NULL, ends with NULL) names options whose variables are ignored, because the caller sets them.
 * fn (may be NULL) is called if two spellings of a variable disagree. CLOCHE_E_USAGE: a variable
 * has an invalid value or is unknown. An empty variable counts as not set. */
CLOCHE_API int cloche_sandbox_load_environment(cloche_sandbox *sb, const char *const *given,
	cloche_warning_fn fn, void *user, cloche_err *err);

/* Read a configuration file (see cloche-config(5)) into sb. NULL: the user's own, if there is one:
 * config.yaml in $XDG_CONFIG_HOME/cloche or ~/.config/cloche, where CLOCHE_E_DENIED means that it
 * belongs to another user or others can write it. It is an error if the file refers to an
 * environment variable that is not set. Naming a file is consent to what it asks for; for files
 * that are found in a project see cloche/project.h. */
CLOCHE_API int cloche_sandbox_load_config(
	cloche_sandbox *sb, const char *yaml_file, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
