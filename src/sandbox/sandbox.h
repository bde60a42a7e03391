/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration behind the public handle. Plain data, checked by the setters in sandbox.c. */

#include "base/strv.h"
#include "provider/spec.h"
#include "sandbox/allowlist.h"
#include "sandbox/group.h"
#include "sandbox/secrets.h"
#include <cloche/run.h>
#include <cloche/sandbox.h>
#include <cloche/srt.h>

#define SANDBOX_WORKSPACE "/workspace" /* where every workspace is */

/* A rule of --connect-to: requests for host:port go to address:to_port. */
struct sandbox_connect_to {
	struct host host, address;
	uint16_t port, to_port;
};

enum sandbox_net {
	SANDBOX_NET_AUTO,    /* the gateway if anything is allowed, else none */
	SANDBOX_NET_NONE,    /* only the room's own loopback */
	SANDBOX_NET_GATEWAY, /* through the gateway; an empty allowlist blocks everything */
	SANDBOX_NET_HOST,    /* the host's, without any policy; provider "subprocess" only */
};

/* Members come from provider/options.def, by type. */
#define MEMBER_SIZE(member) uint64_t member;
#define MEMBER_TIME(member) uint64_t member;
#define MEMBER_FLAG(member) bool member;
#define MEMBER_TEXT(member) char *member;
#define MEMBER_TEXTS(member) char **member;
#define MEMBER_FD(member) int member;
#define MEMBER_OPENED(member) int member;
#define MEMBER_ROOT(member) enum room_root member;
#define MEMBER_NET(member) enum sandbox_net member;
#define MEMBER_ALLOWLIST(member) cloche_allowlist *member;
#define MEMBER_SECRETS(member) cloche_secrets *member;
#define MEMBER_MOUNTS(member)                                                                      \
	struct room_mount *member;                                                                 \
	size_t member##_n;

/* workspace, keep_changes, root_dir and the sources of mounts are absolute. What is granted is
 * opened when it is named, and never found by its path again (INV-NAMED-ONCE); its path is kept as
 * the user named it, for words and for judging it when the room is made. The group belongs to the
 * handle: a copy has none. */
struct cloche_sandbox {
	struct sandbox_group *group;
	cloche_pull_fn on_pull; /* likewise, as the next one */
	void *on_pull_user;
	char **settled; /* likewise: options that files do not set */
	cloche_setting_fn on_setting;
	void *on_setting_user;
	bool always; /* likewise: what the user allows always in a project holds, too */
	struct room_limits limits;
#define OPTION(member, type, ...) MEMBER_##type(member)
#define LIMIT(member, word, ...)
#define VERB(...)
#define MEMBER(member, type) MEMBER_##type(member)
#include "provider/options.def"
};

/* Return a copy, or NULL with errno. */
cloche_sandbox *sandbox_copy(const cloche_sandbox *sb);

/* mounts.c. Open a path that is kept without links, and judge whether a link led from there into
 * credentials. *ret (O_PATH) is the file, *ret_real (heap) where it lies. what: for messages. */
_warn_unused_ int sandbox_open_judged(
	const char *path, const char *what, int *ret, char **ret_real, struct cloche_err *err);
/* Add a mount of what fd was opened on (O_PATH, taken also on failure; -errno: it could not be
 * opened, which is the error). m is copied, but for its fd. */
_warn_unused_ int sandbox_add_mount(
	cloche_sandbox *sb, int fd, const struct room_mount *m, struct cloche_err *err);
/* The same for a mount of another handle, which may be a guard or may not be open. */
_warn_unused_ int sandbox_put_mount(
	cloche_sandbox *sb, int fd, const struct room_mount *m, struct cloche_err *err);
/* After sandbox_load(): fail (E_DENIED) if something that was granted is not there any more, or
 * something else is in its place. */
_warn_unused_ int sandbox_check_opened(const cloche_sandbox *sb, struct cloche_err *err);
/* Make the directory that fd (O_PATH, taken) was opened on the workspace. hidden: not at its own
 * path. */
_warn_unused_ int sandbox_put_workspace(
	cloche_sandbox *sb, int fd, char *source, bool hidden, struct cloche_err *err);
/* Keep what lies at that path below mount number `mount` (from 0) in its place, or read-only. st:
 * what was found there. */
_warn_unused_ int sandbox_add_guard(cloche_sandbox *sb, size_t mount, const char *path,
	const struct stat *st, bool ro, struct cloche_err *err);

/* places.c. Return the second path of a mount (borrowed), at which it is on the host as well, or
 * NULL: nothing that the room's root needs may be hidden by it. Set the root first. */
const char *sandbox_second_path(const cloche_sandbox *sb, const struct room_mount *m);
/* Return the path of the room under which what lies at `path` of the room is recorded, so that a
 * record means the same on another machine: the first path of a mount that has two. Heap; NULL on
 * lack of memory. */
char *sandbox_path_inside(const cloche_sandbox *sb, const char *path);

/* image.c. Take an image of the store as the root: "image:NAME". If the handle says so, pull it
 * first. E_NOT_FOUND if there is none. */
_warn_unused_ int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err);
/* Find a user of --user in that image. */
_warn_unused_ int sandbox_find_image_user(const cloche_sandbox *sb, const char *text,
	uint32_t *ret_uid, uint32_t *ret_gid, struct cloche_err *err);
/* Forget all settings of an image. */
void sandbox_leave_image(cloche_sandbox *sb);

/* Return whether its room will be on another machine, as far as it is said here: an engine may be
 * told so by its own settings. */
bool sandbox_is_elsewhere(const cloche_sandbox *sb);

/* user.c. Who the commands of a sandbox are, inside. */
struct sandbox_user {
	bool own; /* nobody asked for it: the caller's own ids, or root where the root is one that
		   * has no other user */
	uint32_t uid, gid;
	char name[ROOM_USER_MAX + 1]; /* "": none is known, or the root has its own accounts */
};
/* Find out who: of --user, else of the image, else the caller. */
_warn_unused_ int sandbox_find_user(
	const cloche_sandbox *sb, struct sandbox_user *ret, struct cloche_err *err);
/* Return whether --user or the image names one. */
bool sandbox_names_user(const cloche_sandbox *sb);

/* tools.c. Mount what a program that is already shown in the room needs to run (its interpreter).
 */
_warn_unused_ int sandbox_add_needs(cloche_sandbox *sb, const char *file, struct cloche_err *err);

/* Parse such a rule: HOST:PORT:ADDRESS:PORT2. Return false if it is malformed. */
_warn_unused_ bool sandbox_parse_connect_to(const char *rule, struct sandbox_connect_to *ret);

/* Keep a value (copied) out of the URLs of the network log, if it has at most NETCONF_MAX_REDACT
 * bytes and earlier values have left enough space (netconf.h). */
_warn_unused_ int sandbox_redact(cloche_sandbox *sb, const char *value, struct cloche_err *err);

/* Tell cloche_sandbox_on_setting()'s function. */
void sandbox_tell_setting(const cloche_sandbox *sb, const cloche_setting *setting);
/* Return whether files leave this option alone. */
bool sandbox_is_settled(const cloche_sandbox *sb, const char *name);

/* Return whether the sandbox needs the gateway. */
bool sandbox_wants_gateway(const cloche_sandbox *sb);

/* Return whether a variable has the default value of every sandbox. */
bool sandbox_env_is_default(const char *name, const char *value);

/* Return the default working directory of commands; borrowed from sb. */
const char *sandbox_workdir(const cloche_sandbox *sb);

/* Return the configuration as a JSON object for the record: what was granted, secrets and variables
 * by name only. Heap; NULL on lack of memory. */
char *sandbox_describe(const cloche_sandbox *sb);
/* Return its root as --root names it. */
const char *sandbox_root(const cloche_sandbox *sb);
/* Return whether the sandbox has a full record. */
bool sandbox_is_recorded(const cloche_sandbox *sb);
/* Return the same for a sandbox that runs one command: its working directory, and the command with
 * its first arguments, cut if they are long. code_arg: index of the argument in whose place
 * CTL_CODE is shown; 0: none. */
char *sandbox_describe_command(const cloche_sandbox *sb, const char *const *argv, size_t code_arg);

/* tools.c. Add a directory inside to the PATH: in front of the system's, behind those that were
 * added before. */
_warn_unused_ int sandbox_add_path(cloche_sandbox *sb, const char *dir, struct cloche_err *err);

/* Call fn (may be NULL) with a sentence for each secret that no rule lets out, for a network log
 * without a network, for an allowlist of every host, and for each socket that is mounted. */
void sandbox_tell_doubtful(const cloche_sandbox *sb, cloche_warning_fn fn, void *user);

/* --- options of options.def that have code of their own: cloche_sandbox_set() calls it --- */

_warn_unused_ int sandbox_set_workspace(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_workdir(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_root(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_pull(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_keep_changes(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_provider(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_place(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_network_log(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_name(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_runtime(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_venv(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_package_manager(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_record(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_sync(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_record_sync(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_offline(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_set_upstream_dns(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
/* hide: a rule of workspace/hide.h. */
_warn_unused_ int sandbox_hide(cloche_sandbox *sb, const char *rule, cloche_err *err);
_warn_unused_ int sandbox_allow_write(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_add_tool(cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_add_upstream_ca(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
_warn_unused_ int sandbox_add_connect_to(
	cloche_sandbox *sb, const char *value, struct cloche_err *err);
/* "[ADDR:]HOST:GUEST", as sandbox_published() reads it. */
_warn_unused_ int sandbox_publish(cloche_sandbox *sb, const char *value, struct cloche_err *err);
struct sandbox_published {
	char address[16]; /* of loopback, as digits */
	uint16_t host, guest;
};
/* Read one of sb->published; false: it is malformed. */
bool sandbox_published(const char *text, struct sandbox_published *ret);
_warn_unused_ int sandbox_add_label(cloche_sandbox *sb, const char *value, struct cloche_err *err);

/* Limits that somebody asks for; 0: none. */
void sandbox_set_memory(cloche_sandbox *sb, uint64_t bytes);
void sandbox_set_cpus(cloche_sandbox *sb, uint64_t millicpus);
void sandbox_set_limits_best_effort(cloche_sandbox *sb, bool best_effort);

static inline void cloche_sandbox_freep(cloche_sandbox **sb)
{
	cloche_sandbox_free(*sb);
}
