/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration behind the public handle. Plain data; setters in sandbox.c check it. */

#include "base/strv.h"
#include "provider/spec.h"
#include "sandbox/allowlist.h"
#include "sandbox/group.h"
#include "sandbox/secrets.h"
#include <cloche/run.h>
#include <cloche/sandbox.h>
#include <cloche/srt.h>

struct sandbox_connect_to {
	char *host, *address;
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
#define MEMBER_REDIRECTS(member)                                                                   \
	struct sandbox_connect_to *member;                                                         \
	size_t member##_n;

/* workspace, keep_changes, root_dir and the sources of mounts are absolute; a mount's source is as
 * it was named, and judged and opened once, when the room is made. The group is that of the handle:
 * a copy has none. */
struct cloche_sandbox {
	struct sandbox_group *group;
	struct room_limits limits;
#define OPTION(member, type, ...) MEMBER_##type(member)
#define LIMIT(member, ...)
#define VERB(...)
#define MEMBER(member, type) MEMBER_##type(member)
#include "provider/options.def"
};

/* A copy, NULL on lack of memory. */
cloche_sandbox *sandbox_copy(const cloche_sandbox *sb);

/* Adds a mount; m's strings are copied. */
_warn_unused_ int sandbox_add_mount(
	cloche_sandbox *sb, const struct room_mount *m, struct cloche_err *err);

/* Keeps a value (copied) out of the URLs of the network log: if it has NETCONF_MAX_REDACT bytes
 * at most, and those before it left room for it (netconf.h). */
_warn_unused_ int sandbox_redact(cloche_sandbox *sb, const char *value, struct cloche_err *err);

/* Whether the gateway is to be there. */
bool sandbox_wants_gateway(const cloche_sandbox *sb);

/* Whether a variable has the value that every sandbox begins with. */
bool sandbox_env_is_default(const char *name, const char *value);

/* Where commands start that say nothing else; borrowed from sb. */
const char *sandbox_workdir(const cloche_sandbox *sb);

/* The configuration as a JSON object for the record: what was granted, secrets by their names
 * alone, variables by theirs. Heap; NULL on lack of memory. */
char *sandbox_describe(const cloche_sandbox *sb);
/* Whether all that happens in it is put on record. */
bool sandbox_is_recorded(const cloche_sandbox *sb);
/* The same of a sandbox for one command: what it runs, its first arguments, cut if they are
 * long. */
char *sandbox_describe_command(const char *const *argv);

/* Calls fn (may be NULL) with a sentence for each secret that no rule lets go anywhere, and for a
 * log of no network. */
void sandbox_tell_unused(const cloche_sandbox *sb, cloche_warning_fn fn, void *user);

static inline void cloche_sandbox_freep(cloche_sandbox **sb)
{
	cloche_sandbox_free(*sb);
}
