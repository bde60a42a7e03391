/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration behind the public handle. Plain data; setters in sandbox.c check it. */

#include "api/allowlist.h"
#include "api/secrets.h"
#include "base/strv.h"
#include "provider/spec.h"
#include <cloche/sandbox.h>

struct api_mount {
	char *source; /* absolute, as it was named: judged and opened once, when the room is made */
	char *target;
	bool ro, no_link; /* as in struct room_mount */
};

struct api_connect_to {
	char *host, *address;
	uint16_t port, to_port;
};

struct cloche_sandbox {
	char *provider; /* canonical: "auto", "native", ... */
	enum room_root root;
	char *root_dir;
	char *keep_changes; /* absolute; NULL: changes go with the sandbox */
	struct api_mount *mounts;
	size_t mounts_n;
	char *workspace, *workdir, *name;
	char **env;
	enum cloche_net net;
	cloche_allowlist *allowlist;
	cloche_secrets *secrets;
	char *upstream_ca; /* PEM text of all files */
	struct api_connect_to *connect_to;
	size_t connect_to_n;
	char *network_log;
	char *network_log_json; /* NULL: the other name with ".jsonl" added */
	int network_log_fd;
	uint64_t memory, millicpus, pids, timeout_ms, output_limit;
	uint64_t nofile, file_bytes, tmpfs_bytes;
	bool best_effort, nested;
	char *upstream_dns; /* "127.0.0.1:53,[::1]:53"; NULL: the host's */
	char **redact;      /* values that the network log's URLs shall not show */
	size_t redact_bytes;
	char **labels; /* "key=value" */
	uint64_t ttl_ms;
	char *tool_path; /* directories of tools, before PATH; NULL: none */
	char **opened;   /* paths, as the person named them: writable whatever they are */
	char **tools;    /* what was mounted for tools, a line each, for people */
	char *program;   /* what cloche_sandbox_add_command() found */
	char *runtime;   /* "shell", "node", "python"; NULL: none */
};

/* A copy, NULL on lack of memory. */
cloche_sandbox *sandbox_copy(const cloche_sandbox *sb);

/* Adds a mount; m's strings are copied. */
_warn_unused_ int sandbox_add_mount(
	cloche_sandbox *sb, const struct api_mount *m, struct cloche_err *err);

/* Keeps a value (copied) out of the URLs of the network log: where it has NETCONF_MAX_REDACT bytes
 * at most, and those before it left room for it (netconf.h). */
_warn_unused_ int sandbox_redact(cloche_sandbox *sb, const char *value, struct cloche_err *err);

/* Whether the gateway is to be there. */
bool sandbox_wants_gateway(const cloche_sandbox *sb);

static inline void cloche_sandbox_freep(cloche_sandbox **sb)
{
	cloche_sandbox_free(*sb);
}
