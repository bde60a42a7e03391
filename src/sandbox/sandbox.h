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

/* A rule of --connect-to: requests for host:port go to address:to_port. */
struct sandbox_connect_to {
	struct host host, address;
	uint16_t port, to_port;
};

/* Members come from provider/options.def, by type. */
#define MEMBER_SIZE(member) uint64_t member;
#define MEMBER_TIME(member) uint64_t member;
#define MEMBER_FLAG(member) bool member;
#define MEMBER_TEXT(member) char *member;
#define MEMBER_TEXTS(member) char **member;
#define MEMBER_FD(member) int member;
#define MEMBER_ROOT(member) enum room_root member;
#define MEMBER_NET(member) enum cloche_net member;
#define MEMBER_ALLOWLIST(member) cloche_allowlist *member;
#define MEMBER_SECRETS(member) cloche_secrets *member;
#define MEMBER_MOUNTS(member)                                                                      \
	struct room_mount *member;                                                                 \
	size_t member##_n;

/* workspace, keep_changes, root_dir and the sources of mounts are absolute. A mount's source is
 * kept as the user named it; it is checked and opened once, when the room is made. The group
 * belongs to the handle: a copy has none. */
struct cloche_sandbox {
	struct sandbox_group *group;
	struct room_limits limits;
#define OPTION(member, type, ...) MEMBER_##type(member)
#define LIMIT(member, ...)
#define VERB(...)
#define MEMBER(member, type) MEMBER_##type(member)
#include "provider/options.def"
};

/* Return a copy, NULL on lack of memory. */
cloche_sandbox *sandbox_copy(const cloche_sandbox *sb);

/* Add a mount; m's strings are copied. */
_warn_unused_ int sandbox_add_mount(
	cloche_sandbox *sb, const struct room_mount *m, struct cloche_err *err);

/* image.c. Take an image of the store as the root: "image:NAME". E_NOT_FOUND if there is none. */
_warn_unused_ int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err);
/* Forget all settings of an image. */
void sandbox_leave_image(cloche_sandbox *sb);

/* tools.c. Mount what a program that is already shown in the room needs to run (its interpreter).
 */
_warn_unused_ int sandbox_add_needs(cloche_sandbox *sb, const char *file, struct cloche_err *err);

/* Parse such a rule: HOST:PORT:ADDRESS:PORT2. Return false if it is malformed. */
_warn_unused_ bool sandbox_parse_connect_to(const char *rule, struct sandbox_connect_to *ret);

/* Keep a value (copied) out of the URLs of the network log, if it has at most NETCONF_MAX_REDACT
 * bytes and earlier values have left enough space (netconf.h). */
_warn_unused_ int sandbox_redact(cloche_sandbox *sb, const char *value, struct cloche_err *err);

/* Return whether the sandbox needs the gateway. */
bool sandbox_wants_gateway(const cloche_sandbox *sb);

/* Return whether a variable has the default value of every sandbox. */
bool sandbox_env_is_default(const char *name, const char *value);

/* Return the default working directory of commands; borrowed from sb. */
const char *sandbox_workdir(const cloche_sandbox *sb);

/* Return the configuration as a JSON object for the record: what was granted, secrets and variables
 * by name only. Heap; NULL on lack of memory. */
char *sandbox_describe(const cloche_sandbox *sb);
/* Return whether the sandbox has a full record. */
bool sandbox_is_recorded(const cloche_sandbox *sb);
/* Return the same for a sandbox that runs one command: the command and its first arguments, cut if
 * they are long. code_arg: index of the argument in whose place CTL_CODE is shown; 0: none. */
char *sandbox_describe_command(const char *const *argv, size_t code_arg);

/* Call fn (may be NULL) with a sentence for each secret that no rule lets out, and for a network
 * log without a network. */
void sandbox_tell_unused(const cloche_sandbox *sb, cloche_warning_fn fn, void *user);

static inline void cloche_sandbox_freep(cloche_sandbox **sb)
{
	cloche_sandbox_free(*sb);
}
