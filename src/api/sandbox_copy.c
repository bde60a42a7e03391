/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox.h"

#include <errno.h>

static int copy_arrays(const cloche_sandbox *sb, cloche_sandbox *copy)
{
	for (size_t i = 0; i < sb->mounts_n; i++)
		if (sandbox_add_mount(copy, &sb->mounts[i], NULL) < 0)
			return -ENOMEM;
	if (sb->connect_to_n == 0)
		return 0;
	copy->connect_to = calloc(sb->connect_to_n, sizeof(*copy->connect_to));
	if (!copy->connect_to)
		return -ENOMEM;
	for (size_t i = 0; i < sb->connect_to_n; i++) {
		struct api_connect_to *c = &copy->connect_to[copy->connect_to_n++];

		*c = sb->connect_to[i];
		c->host = strdup(c->host);
		c->address = strdup(c->address);
		if (!c->host || !c->address)
			return -ENOMEM;
	}
	return 0;
}

static int copy_strings(const cloche_sandbox *sb, cloche_sandbox *copy)
{
	const struct {
		char **to;
		const char *from;
	} strings[] = {{&copy->provider, sb->provider}, {&copy->root_dir, sb->root_dir},
		{&copy->keep_changes, sb->keep_changes}, {&copy->tool_path, sb->tool_path},
		{&copy->program, sb->program}, {&copy->workspace, sb->workspace},
		{&copy->workdir, sb->workdir}, {&copy->name, sb->name},
		{&copy->upstream_ca, sb->upstream_ca}, {&copy->upstream_dns, sb->upstream_dns},
		{&copy->network_log, sb->network_log},
		{&copy->network_log_json, sb->network_log_json}, {&copy->runtime, sb->runtime}};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		if (set_string(strings[i].to, strings[i].from, NULL) < 0)
			return -ENOMEM;
	if (strv_copy(sb->env, &copy->env) < 0 || strv_copy(sb->labels, &copy->labels) < 0 ||
		strv_copy(sb->opened, &copy->opened) < 0)
		return -ENOMEM;
	copy->redact_bytes = sb->redact_bytes;
	if (strv_copy(sb->redact, &copy->redact) < 0)
		return -ENOMEM;
	return strv_copy(sb->tools, &copy->tools);
}

cloche_sandbox *sandbox_copy(const cloche_sandbox *sb)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->root = sb->root;
	copy->net = sb->net;
	copy->network_log_fd = sb->network_log_fd;
	copy->memory = sb->memory;
	copy->millicpus = sb->millicpus;
	copy->pids = sb->pids;
	copy->nofile = sb->nofile;
	copy->file_bytes = sb->file_bytes;
	copy->tmpfs_bytes = sb->tmpfs_bytes;
	copy->timeout_ms = sb->timeout_ms;
	copy->output_limit = sb->output_limit;
	copy->best_effort = sb->best_effort;
	copy->ttl_ms = sb->ttl_ms;
	copy->nested = sb->nested;
	copy->allowlist = allowlist_copy(sb->allowlist);
	copy->secrets = secrets_copy(sb->secrets);
	if ((sb->allowlist && !copy->allowlist) || (sb->secrets && !copy->secrets) ||
		copy_strings(sb, copy) < 0 || copy_arrays(sb, copy) < 0)
		return NULL;
	return TAKE_PTR(copy);
}
