/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SANDBOX_H
#define CLOCHE_SANDBOX_H
/* A sandbox's configuration: what the inside may see, reach and use. Build it with setters, then
 * hand it to cloche_run_new() or cloche_task_new(), which copy it; it can be used again.
 *
 * Strings are copied. Functions that return int return 0 or a negated error code and describe the
 * failure in err (which may be NULL). A configuration may be used by one thread at a time. */

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

/* Called with a sentence that a person should know ("cpu limit is not enforced here: ..."). */
typedef void (*cloche_warning_fn)(const char *text, void *user);

enum cloche_net {
	CLOCHE_NET_AUTO,    /* the gateway when anything is allowed, else none */
	CLOCHE_NET_NONE,    /* no network but the room's own loopback */
	CLOCHE_NET_GATEWAY, /* through the gateway; with an empty allowlist all is refused */
	CLOCHE_NET_HOST,    /* the machine's: by provider "subprocess" alone; nothing is judged */
};

/* A configuration with nothing granted: host's system read-only, no mounts, no network, no
 * environment but the basics. NULL on lack of memory. */
CLOCHE_API cloche_sandbox *cloche_sandbox_new(void);
/* Frees it; NULL is fine. */
CLOCHE_API void cloche_sandbox_free(cloche_sandbox *sb);

/* An option of the command line, which is a setting of a configuration as well. Everything is
 * borrowed from the library, for ever. */
typedef struct cloche_option {
	const char *name;     /* as in --name */
	const char *argument; /* what stands behind it in the help; NULL: it takes none */
	const char *help;     /* "\n" begins a new line */
	const char *commands; /* those that have it, in words; NULL: all that make a sandbox */
	char letter;          /* as in -x; 0: none */
} cloche_option;

/* All of them, in the order of the help; i from 0, NULL at the end. May be called by any thread. */
CLOCHE_API const cloche_option *cloche_sandbox_option(size_t i);

/* Does what the option of this name does with this value (ignored if it takes none). Options that
 * can be repeated add to what is there. An unknown name is CLOCHE_E_USAGE. */
CLOCHE_API int cloche_sandbox_set(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err);

/* "auto" (native, and if that does not work podman or docker), "native", "podman", "docker",
 * "nerdctl", "srt" (native, for cloche/srt.h) or "subprocess" (aliases: none, local), which is no
 * room: the command runs on this machine, kept to its files by Landlock alone; "auto+subprocess" is
 * auto, and that if nothing else works. Or the name of another provider's program,
 * cloche-provider-NAME, in a directory of $CLOCHE_PROVIDER_PATH, or its absolute path
 * (docs/design/provider-protocol.md). What providers can do is in docs/design/providers.md. "e2b"
 * and "cloudflare" are known names, but a run with one fails with CLOCHE_E_UNSUPPORTED in this
 * version. */
CLOCHE_API int cloche_sandbox_set_provider(cloche_sandbox *sb, const char *name, cloche_err *err);

/* If the provider is "auto" it becomes "auto+subprocess". */
CLOCHE_API int cloche_sandbox_allow_unsandboxed(cloche_sandbox *sb, cloche_err *err);

/* Has that name mean the program at an absolute path from here on, in this process alone: name is 1
 * to 32 of [a-z0-9-] and no provider that is part of cloche. Both are copied. One thread at a time,
 * and not while sandboxes are started. CLOCHE_E_USAGE, CLOCHE_E_LIMIT (more than 16). */
CLOCHE_API int cloche_provider_register(const char *name, const char *path, cloche_err *err);

/* The name of the i-th provider of this version. NULL behind the last. */
CLOCHE_API const char *cloche_provider_name(size_t i);

/* "host", the path of a directory that becomes the root, or "image:NAME", an image that is stored
 * (cloche/image.h; CLOCHE_E_NOT_FOUND). Of an image its variables, working directory and volumes
 * hold unless others are set, and cloche_run_new() puts its entrypoint before the command and has
 * its command if none is given, run by its user. */
CLOCHE_API int cloche_sandbox_set_root(cloche_sandbox *sb, const char *root, cloche_err *err);

/* Keeps what the inside changes in its root (all but /tmp and what is mounted) in dir, which is
 * made if missing. It has to be empty, or what an earlier sandbox with the same root left: then
 * that is continued. Only one sandbox at a time can use it; nothing that is mounted for writing may
 * lie in it or hold it. cloche_diff_kept() (cloche/diff.h) lists what is in it. NULL: changes are
 * thrown away, as is the default; then a one-shot run's view of the host is read-only below /usr.
 */
CLOCHE_API int cloche_sandbox_set_keep_changes(
	cloche_sandbox *sb, const char *dir, cloche_err *err);

/* Mounts a program of the caller's and what it needs read-only at the same paths inside, and puts
 * its directory before PATH there: for tools that a person has installed outside the system's
 * directories (nvm, pyenv, npm -g, pipx, cargo, ~/.local/bin, /opt, ...). tool: a path, or a name
 * that is looked for on the caller's PATH. Of the home directory no more than the tool's own
 * directory is shown, and never what holds credentials. CLOCHE_E_NOT_FOUND if it or its
 * interpreter is missing. */
CLOCHE_API int cloche_sandbox_add_tool(cloche_sandbox *sb, const char *tool, cloche_err *err);

/* The same for a command that is to be run, if it is not inside anyhow. Set root, workspace and
 * mounts before. *ret_program (borrowed until the next call) is what to run: command itself, or the
 * path inside of what it means to the caller. What is not found stays as it is: it may be there
 * inside. */
CLOCHE_API int cloche_sandbox_add_command(
	cloche_sandbox *sb, const char *command, const char **ret_program, cloche_err *err);

/* What was mounted for tools and commands, a line for people each; i from 0, NULL at the end. */
CLOCHE_API const char *cloche_sandbox_tool_note(const cloche_sandbox *sb, size_t i);

/* Mounts a file or directory of the host. destination NULL: the same path as the source. */
CLOCHE_API int cloche_sandbox_add_mount(cloche_sandbox *sb, const char *source,
	const char *destination, bool read_only, cloche_err *err);

/* Mounts dir read-write at /workspace and makes that the working directory. In it, as in every
 * directory that is mounted for writing, what the host would run or obey without being asked (hooks
 * and configurations of git, settings of editors, ...: docs/design/workspace.md) is read-only where
 * a bounded search finds it when the sandbox is made; what is put there anew is found when it ends
 * (cloche/planted.h). */
CLOCHE_API int cloche_sandbox_set_workspace(cloche_sandbox *sb, const char *dir, cloche_err *err);

/* Leaves one such path writable: relative to the workspace, or absolute, as on the host or as
 * inside. What is put there is then named when the sandbox ends, but not set aside. May be called
 * up to 64 times. Whether it lies in something writable is judged when the sandbox is made. */
CLOCHE_API int cloche_sandbox_allow_write(cloche_sandbox *sb, const char *path, cloche_err *err);

/* Working directory inside; default /workspace if there is one, else "/". */
CLOCHE_API int cloche_sandbox_set_workdir(cloche_sandbox *sb, const char *dir, cloche_err *err);

/* Sets a variable of the inside's environment. Nothing of the caller's environment is passed. */
CLOCHE_API int cloche_sandbox_set_env(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err);

CLOCHE_API int cloche_sandbox_set_net(cloche_sandbox *sb, enum cloche_net net, cloche_err *err);

/* What may be reached. Copied. */
CLOCHE_API int cloche_sandbox_set_allowlist(
	cloche_sandbox *sb, const cloche_allowlist *list, cloche_err *err);

/* Credentials that the inside uses without having them. Copied into locked memory; surrogates take
 * their place in the inside's environment. One of a name that is there already replaces it. */
CLOCHE_API int cloche_sandbox_add_secrets(
	cloche_sandbox *sb, const cloche_secrets *secrets, cloche_err *err);

/* Trusts the PEM certificates of a file for upstream TLS, besides the host's. */
CLOCHE_API int cloche_sandbox_add_upstream_ca(
	cloche_sandbox *sb, const char *pem_file, cloche_err *err);

/* "HOST:PORT:ADDRESS:PORT2": requests to HOST:PORT go to ADDRESS:PORT2, which may be private. */
CLOCHE_API int cloche_sandbox_add_connect_to(cloche_sandbox *sb, const char *rule, cloche_err *err);

/* Which DNS servers are asked for the addresses of allowed hosts, in place of this machine's:
 * "ADDRESS[:PORT],..." with IPv6 in brackets if a port follows; NULL: this machine's again. The
 * hosts file stays in front of them. What they answer is judged as ever: private addresses are
 * refused unless an entry of the allowlist admits them. */
CLOCHE_API int cloche_sandbox_set_upstream_dns(
	cloche_sandbox *sb, const char *servers, cloche_err *err);

/* Appends the network log to file (plain form) and to file with ".jsonl" (JSON Lines). */
CLOCHE_API int cloche_sandbox_set_network_log(
	cloche_sandbox *sb, const char *file, cloche_err *err);

/* Writes the plain form of the network log to fd too, each line behind "[net] ". fd is borrowed
 * until the run ends; -1 turns it off. */
CLOCHE_API void cloche_sandbox_set_network_log_fd(cloche_sandbox *sb, int fd);

/* Limits; 0 takes a limit away. Memory in bytes (swap is never used), cpus in thousandths of one,
 * pids as a count, time in milliseconds, output in bytes for each of stdout and stderr. */
CLOCHE_API void cloche_sandbox_set_memory(cloche_sandbox *sb, uint64_t bytes);
CLOCHE_API void cloche_sandbox_set_cpus(cloche_sandbox *sb, uint64_t millicpus);
CLOCHE_API void cloche_sandbox_set_pids(cloche_sandbox *sb, uint64_t count);
CLOCHE_API void cloche_sandbox_set_timeout(cloche_sandbox *sb, uint64_t milliseconds);
CLOCHE_API void cloche_sandbox_set_output_limit(cloche_sandbox *sb, uint64_t bytes);

/* The same from text as people write it: name is "memory", "cpus", "pids", "timeout", "ttl",
 * "output-limit", "nofile" (open files of each process), "file-size" (of each file that is
 * written) or "tmpfs-size" (what /tmp, /run, /home and /dev/shm hold together; it cannot be more
 * than the memory); value "512m", "0.5", "100", "30s", "10m". */
CLOCHE_API int cloche_sandbox_set_limit(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err);

/* A time as people write it ("500ms", "30s", "1.5m", "2h", "30": seconds) in milliseconds. */
CLOCHE_API int cloche_parse_duration(const char *text, uint64_t *ret_milliseconds, cloche_err *err);

/* True: a limit that cannot be enforced here is announced as a warning instead of refused. */
CLOCHE_API void cloche_sandbox_set_limits_best_effort(cloche_sandbox *sb, bool best_effort);

/* True: those inside may make namespaces of their own, user namespaces among them, and mounts in
 * them, so that bwrap, "unshare -Ur" and container engines work inside. A wall less: see
 * cloche-run(1),
 * --nested. */
CLOCHE_API void cloche_sandbox_set_nested(cloche_sandbox *sb, bool nested);

/* A name for people; letters, digits, '-', '_' and '.', at most 63. */
CLOCHE_API int cloche_sandbox_set_name(cloche_sandbox *sb, const char *name, cloche_err *err);

/* What else a long-lived sandbox (cloche/instance.h) has; one-shot runs ignore it. A label is
 * KEY=VALUE, key as a name above, value any UTF-8 text; one of a key that is there replaces it.
 * Time to live in milliseconds, 0 (default): none. Runtime "shell", "node" or "python": the
 * interpreter has to be there, or making the sandbox fails; NULL: nothing is asked. */
CLOCHE_API int cloche_sandbox_add_label(cloche_sandbox *sb, const char *label, cloche_err *err);
CLOCHE_API void cloche_sandbox_set_ttl(cloche_sandbox *sb, uint64_t milliseconds);
CLOCHE_API int cloche_sandbox_set_runtime(cloche_sandbox *sb, const char *runtime, cloche_err *err);
/* Of a runtime of python: a virtual environment (python3 -m venv) in this directory inside,
 * absolute or below the working directory. cloche_instance_create() makes it if there is none,
 * and every command has its bin first in the PATH, and VIRTUAL_ENV. NULL: none. */
CLOCHE_API int cloche_sandbox_set_venv(cloche_sandbox *sb, const char *dir, cloche_err *err);
/* Of a runtime of node: "npm", "pnpm", "yarn" or "bun", which is shown as a tool of the host
 * (cloche_sandbox_add_tool()); cloche_instance_create() fails if it is not there. NULL: any. */
CLOCHE_API int cloche_sandbox_set_package_manager(
	cloche_sandbox *sb, const char *name, cloche_err *err);
/* "ops": an operation log is kept (cloche/state.h); "full": also of commands, their output and the
 * files that they change; "none": none is; NULL: as the runtime has it. */
CLOCHE_API int cloche_sandbox_set_record(cloche_sandbox *sb, const char *record, cloche_err *err);
/* When what is recorded is safe from a power cut: "always" (before an operation counts as done),
 * "interval" (about a second later, and when its writer ends; the default) or "never" (when the
 * kernel likes). NULL: the default. Killing a process loses nothing with any of them. */
CLOCHE_API int cloche_sandbox_set_record_sync(
	cloche_sandbox *sb, const char *sync, cloche_err *err);
/* What is requested is answered from a record alone: that of a sandbox (id or name) that was
 * recorded in full, or of a file that was exported. No connection is made and no policy asked;
 * secrets are surrogates as ever, and those that are added to sb by name or by a configuration file
 * from now on need no value. NULL (default): there is a network, if anything is allowed. */
CLOCHE_API int cloche_sandbox_set_offline(cloche_sandbox *sb, const char *record, cloche_err *err);

/* Reads the AGENTGATE_SANDBOX_ variables of the caller's environment (cloche(1)) into sb. given
 * (may be NULL, ends with NULL): names of options whose variables do not count, as the caller sets
 * them himself. fn (may be NULL) is told of two spellings that disagree. CLOCHE_E_USAGE: a value
 * cannot be, or nobody knows such a variable; an empty one is as one that is not set. */
CLOCHE_API int cloche_sandbox_load_environment(cloche_sandbox *sb, const char *const *given,
	cloche_warning_fn fn, void *user, cloche_err *err);

/* Reads a configuration file (see cloche-config(5)) into sb: environment, masked secrets, limits.
 * An environment variable that it refers to and that is not set is an error. To name a file is to
 * consent to what it asks for; those of a project that are looked for are in cloche/project.h. */
CLOCHE_API int cloche_sandbox_load_config(
	cloche_sandbox *sb, const char *yaml_file, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
