/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox.h"
#include "base/parse.h"

#include <stddef.h>

enum {
	MAX_PIDS = 4194304, /* of the kernel */
	MIN_NOFILE = 64,
	MAX_NOFILE = 1 << 20,
};

void cloche_sandbox_set_memory(cloche_sandbox *sb, uint64_t bytes)
{
	sb->memory = bytes;
}

void cloche_sandbox_set_cpus(cloche_sandbox *sb, uint64_t millicpus)
{
	sb->millicpus = millicpus;
}

void cloche_sandbox_set_pids(cloche_sandbox *sb, uint64_t count)
{
	sb->pids = count;
}

void cloche_sandbox_set_timeout(cloche_sandbox *sb, uint64_t milliseconds)
{
	sb->timeout_ms = milliseconds;
}

void cloche_sandbox_set_output_limit(cloche_sandbox *sb, uint64_t bytes)
{
	sb->output_limit = bytes;
}

enum limit_kind { LIMIT_SIZE, LIMIT_CPUS, LIMIT_COUNT, LIMIT_TIME };

/* What people may set by name; where it lies, the least with which a room can start (or the least
 * of a count), and the most of a count. */
static const struct limit {
	const char *name;
	enum limit_kind kind;
	size_t offset;
	uint64_t least, most;
} limits[] = {
	{"memory", LIMIT_SIZE, offsetof(cloche_sandbox, memory), 1 << 20, 0},
	{"output-limit", LIMIT_SIZE, offsetof(cloche_sandbox, output_limit), 0, 0},
	{"file-size", LIMIT_SIZE, offsetof(cloche_sandbox, file_bytes), 0, 0},
	{"tmpfs-size", LIMIT_SIZE, offsetof(cloche_sandbox, tmpfs_bytes), 64 << 10, 0},
	{"cpus", LIMIT_CPUS, offsetof(cloche_sandbox, millicpus), 0, 0},
	{"pids", LIMIT_COUNT, offsetof(cloche_sandbox, pids), 1, MAX_PIDS},
	/* Init and the commands' pipes need some. */
	{"nofile", LIMIT_COUNT, offsetof(cloche_sandbox, nofile), MIN_NOFILE, MAX_NOFILE},
	{"timeout", LIMIT_TIME, offsetof(cloche_sandbox, timeout_ms), 0, 0},
	{"ttl", LIMIT_TIME, offsetof(cloche_sandbox, ttl_ms), 0, 0},
};

static int parse_limit(
	const struct limit *l, const char *value, uint64_t *ret, struct cloche_err *err)
{
	struct str s = str_from(value);

	switch (l->kind) {
	case LIMIT_SIZE:
		if (parse_size(s, ret) == 0 && *ret < l->least) {
			err_set(err, E_USAGE, "%s \"%s\": nothing can start with so little",
				l->name, value);
			err_hint(err, "at least %lluk is needed",
				(unsigned long long)(l->least / 1024));
			return -E_USAGE;
		}
		if (parse_size(s, ret) == 0)
			return 0;
		return err_set(err, E_USAGE, "%s \"%s\": use a size such as 64k, 512m or 2g",
			l->name, value);
	case LIMIT_CPUS:
		if (parse_cpus(s, ret) == 0)
			return 0;
		return err_set(err, E_USAGE,
			"%s \"%s\": use a number such as 0.5 or 2, at least 0.01", l->name, value);
	case LIMIT_COUNT:
		if (parse_u64(s, l->most, ret) == 0 && *ret >= l->least)
			return 0;
		return err_set(err, E_USAGE, "%s \"%s\": use a number from %llu to %llu", l->name,
			value, (unsigned long long)l->least, (unsigned long long)l->most);
	case LIMIT_TIME:
		if (parse_duration(s, ret) < 0)
			return err_set(err, E_USAGE,
				"%s \"%s\": use a time such as 500ms, 30s or 5m", l->name, value);
		*ret = MAX(*ret / 1000, (uint64_t)1);
		return 0;
	}
	return -E_INTERNAL;
}

int cloche_sandbox_set_limit(
	cloche_sandbox *sb, const char *name, const char *value, cloche_err *err)
{
	uint64_t v = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r;

		if (strcmp(name, limits[i].name) != 0)
			continue;
		r = parse_limit(&limits[i], value, &v, err);
		if (r == 0)
			*(uint64_t *)(void *)((char *)sb + limits[i].offset) = v;
		return r;
	}
	return err_set(err, E_USAGE, "unknown limit \"%s\"", name);
}

int cloche_parse_duration(const char *text, uint64_t *ret_milliseconds, cloche_err *err)
{
	uint64_t v;

	if (parse_duration(str_from(text), &v) < 0)
		return err_set(err, E_USAGE, "\"%s\" is no time: use 500ms, 30s, 5m or 2h", text);
	*ret_milliseconds = MAX(v / 1000, (uint64_t)1);
	return 0;
}

void cloche_sandbox_set_limits_best_effort(cloche_sandbox *sb, bool best_effort)
{
	sb->best_effort = best_effort;
}
