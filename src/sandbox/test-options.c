/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: each is set by its name, kept by a copy, and told of in the record. */
#include "fs/fs.h"
#include "sandbox/options.h"
#include "sandbox/store.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cloche_err err;

/* A value that each option takes; NULL takes none. Twice means: it adds to what is there. */
static const struct {
	const char *name, *good, *bad;
	bool repeats;
} cases[] = {
	{"workspace", "/tmp", "/nonexistent", false},
	{"mount", "/usr:/mnt:ro", "/usr:/mnt:rx", true},
	{"volume", "/usr:/mnt:ro", "/usr:/mnt:rx", true},
	{"allow-write", ".vscode", "a/../b", true},
	{"hide", "config/*.key", "secrets/", true},
	{"srt-settings", NULL, "/nonexistent", false},
	{"workdir", "/tmp", "tmp", false},
	{"user", "1234:users", "no body", false},
	{"root", "/usr", "/nonexistent", false},
	{"pull", "always", "sometimes", false},
	{"keep-changes", "/tmp/changes", "", false},
	{"tool", "/bin/sh", "/nonexistent", true},
	{"env", "NAME=value", "=", false},
	{"env-file", NULL, "/nonexistent", false},
	{"pass-env", "TEST_OPTION", "A=1", false},
	{"allow", "one.test", "http://", true},
	{"allowlist", NULL, "/nonexistent", true},
	{"preset", "debian", "no-such-preset", true},
	{"secret", "TEST_OPTION@one.test", "TEST_OPTION", true},
	{"secret-file", NULL, "NAME@one.test", true},
	{"aws-secret", NULL, "one.test", true},
	{"net", "none", "bridge", false},
	{"upstream-ca", NULL, "/nonexistent", true},
	{"dns", "1.1.1.1", "one.test", false},
	{"publish", "127.0.0.2:0:80", "0.0.0.0:8080:80", true},
	{"connect-to", "one.test:443:127.0.0.1:8443", "one.test:443", true},
	{"memory", "512m", "1", false},
	{"cpus", "0.5", "0", false},
	{"pids", "100", "0", false},
	{"timeout", "30s", "soon", false},
	{"nofile", "100", "1", false},
	{"file-size", "1g", "much", false},
	{"tmpfs-size", "64m", "1", false},
	{"output-limit", "1m", "all", false},
	{"limits", "best-effort", "none", false},
	{"ask", NULL, NULL, false},
	{"nested", NULL, NULL, false},
	{"network-log", "/tmp/log", NULL, false},
	{"provider", "native", "wasm", false},
	{"place", "me@build.test", "a\nb", false},
	{"sync", "tracked", "some", false},
	{"far-timeout", "5m", "soon", false},
	{"name", "d_v", "_dev", false},
	{"ttl", "1h", "1x", false},
	{"label", "team=core", "team", true},
	{"runtime", "node", "perl", false},
	{"venv", ".venv", "a:b", false},
	{"package-manager", "pnpm", "cargo", false},
	{"record", "full", "all", false},
	{"record-limit", "1m", "1", false},
	{"offline", "dev", "", false},
	{"record-sync", "always", "sometimes", false},
	{"no-record", NULL, NULL, false},
};

/* Every option has a row above, and none stands here that is none. */
static void test_all_have_a_case(void)
{
	const cloche_option *o;
	size_t n;

	for (n = 0; (o = cloche_sandbox_option(n)); n++) {
		bool there = false;

		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			there |= strcmp(cases[i].name, o->name) == 0;
		if (!there)
			printf("# no case for --%s\n", o->name);
		check(there);
		check(o->help && o->help[0]);
		for (size_t i = 0; i < n; i++) {
			const cloche_option *p = cloche_sandbox_option(i);

			check(strcmp(p->name, o->name) != 0 &&
				(!o->letter || p->letter != o->letter));
		}
	}
	check_int((long)n, (long)ARRAY_SIZE(cases));
}

/* A configuration in which everything that has a good value is set. */
static cloche_sandbox *full(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();

	setenv("TEST_OPTION", "a-value-of-an-option", 1);
	must(sb != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sandbox_option *o = option_find(cases[i].name);

		if (!o || (o->argument && !cases[i].good))
			continue;
		memset(&err, 0, sizeof(err));
		if (cloche_sandbox_set(sb, o->name, cases[i].good, &err) < 0)
			printf("# --%s: %s\n", o->name, err.message);
		check(err.code == 0);
	}
	return sb;
}

static void test_set_by_name(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = full();

	check(sb->limits.memory_bytes == 512U << 20 && sb->limits.cpus_milli == 500);
	check(sb->limits.pids == 100 && sb->limits.nofile == 100 && sb->timeout_ms == 30000);
	check(sb->best_effort && sb->nested && sb->net == SANDBOX_NET_NONE);
	check_z(sb->workspace, "/tmp");
	check_z(strv_env_get(sb->env, "NAME"), "value");
	check_z(strv_env_get(sb->env, "TEST_OPTION"), "a-value-of-an-option");
	check(cloche_allowlist_count(sb->allowlist) == 3 && cloche_secrets_count(sb->secrets) == 1);
	check(sb->mounts[sb->mounts_n - 1].ro || sb->mounts[1].ro);
	check_z(sb->runtime, "node");
	check_z(sb->venv, ".venv");
	check_z(sb->package_manager, "pnpm");
}

/* A default limit that is set has been asked for. */
static void test_optional_limits(void)
{
	for (int how = 0; how < 2; how++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new(),
							       *copy = NULL;

		must(sb);
		sb->memory_optional = sb->cpus_optional = true;
		if (how == 0)
			must(cloche_sandbox_set(sb, "memory", NULL, &err) == 0);
		else
			must(cloche_sandbox_set(sb, "memory", "1g", &err) == 0);
		check(!sb->memory_optional && sb->cpus_optional);
		must(cloche_sandbox_set(sb, "limits", "best-effort", &err) == 0);
		copy = sandbox_copy(sb);
		check(copy && !copy->memory_optional && copy->cpus_optional);
		must(cloche_sandbox_set(sb, "cpus", "2", &err) == 0);
		check(!sb->cpus_optional);
		must(cloche_sandbox_set(copy, "limits", "strict", &err) == 0);
		check(!copy->cpus_optional);
	}
}

static void test_bad_values(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		memset(&err, 0, sizeof(err));
		if (!cases[i].bad || !*cases[i].bad)
			continue;
		if (cloche_sandbox_set(sb, cases[i].name, cases[i].bad, &err) >= 0)
			printf("# --%s %s was taken\n", cases[i].name, cases[i].bad);
		check(err.code != 0 && err.message[0]);
	}
}

static void test_unknown_and_missing(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(cloche_sandbox_set(sb, "colour", "red", &err), -E_USAGE);
	check_int(cloche_sandbox_set(sb, "workspace", NULL, &err), -E_USAGE);
	check_int(cloche_sandbox_set(sb, "label", NULL, &err), -E_USAGE);
	check_int(cloche_sandbox_set(sb, "root", NULL, &err), -E_USAGE);
}

static void test_taken_away(void)
{
	static const char *const set[][2] = {{"memory", "64m"}, {"timeout", "3s"}, {"venv", "v"},
		{"runtime", "node"}, {"record", "ops"}, {"offline", "x"}, {"dns", "127.0.0.1"}};
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	for (size_t i = 0; i < ARRAY_SIZE(set); i++) {
		check_int(cloche_sandbox_set(sb, set[i][0], set[i][1], &err), 0);
		check_int(cloche_sandbox_set(sb, set[i][0], NULL, &err), 0);
	}
	check(sb->limits.memory_bytes == 0 && sb->timeout_ms == 0);
	check(!sb->venv && !sb->runtime && !sb->kept_record && !sb->offline && !sb->upstream_dns);
}

/* What is said twice either counts as it was said last, or adds. */
static void test_repeated(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = full();
	size_t mounts = sb->mounts_n;

	check_int(cloche_sandbox_set(sb, "workspace", "/usr", &err), 0);
	check_z(sb->workspace, "/usr");
	check_z(sb->mounts[0].source, "/usr");
	check_int((long)sb->mounts_n, (long)mounts);
	check_int(cloche_sandbox_set(sb, "mount", "/etc:/mnt/etc:ro", &err), 0);
	check_int((long)sb->mounts_n, (long)mounts + 1);
	/* The same secret in two options is a slip. */
	check_int(cloche_sandbox_set(sb, "secret", "TEST_OPTION@two.test", &err), -E_CONFIG);
}

/* Whose image it is depends on where the sandbox is made, whichever is said first. */
static void test_images_elsewhere(void)
{
	static const char *const elsewhere[][2] = {
		{"provider", "kubernetes"}, {"provider", "cloudflare"}, {"place", "there"}};
	char dir[TAP_DIR_BYTES];

	tap_dir(dir);
	must(setenv("CLOCHE_STATE_DIR", dir, 1) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		must(cloche_sandbox_set(sb, "pull", "never", &err) == 0);
		check_int(cloche_sandbox_set(sb, "root", "image:x.test/not:here", &err),
			-E_NOT_FOUND);
		must(cloche_sandbox_set(sb, elsewhere[i][0], elsewhere[i][1], &err) == 0);
		check_int(cloche_sandbox_set(sb, "root", "image:x.test/not:here", &err), 0);
		check_z(sb->image, "image:x.test/not:here");
		if (strcmp(elsewhere[i][0], "provider") == 0)
			check_int(cloche_sandbox_set(sb, "provider", "podman", &err), -E_NOT_FOUND);
		else
			check_int(cloche_sandbox_set(sb, "place", NULL, &err), -E_NOT_FOUND);
	}
	must(unsetenv("CLOCHE_STATE_DIR") == 0 && fs_remove_tree(AT_FDCWD, dir) == 0);
}

/* Nor are this machine's programs brought there. */
static void test_commands_elsewhere(void)
{
	static const char *const elsewhere[][2] = {
		{"provider", "kubernetes"}, {"provider", "cloudflare"}, {"place", "there"}};
	char dir[TAP_DIR_BYTES], command[TAP_DIR_BYTES + 8];

	tap_dir(dir);
	snprintf(command, sizeof(command), "%s/sh", dir);
	must(close(open(command, O_WRONLY | O_CREAT | O_CLOEXEC, 0755)) == 0);
	for (size_t i = 0; i <= ARRAY_SIZE(elsewhere); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
		bool here = i == ARRAY_SIZE(elsewhere);
		const char *program;

		if (!here)
			must(cloche_sandbox_set(sb, elsewhere[i][0], elsewhere[i][1], &err) == 0);
		check_int(cloche_sandbox_add_command(sb, command, &program, &err), 0);
		check(here == (strv_count(sb->tools) > 0));
	}
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
}

static void test_copy(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = full();
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = sandbox_copy(sb);
	_cleanup_(freep) char *one = sandbox_describe(sb),
			      *two = copy ? sandbox_describe(copy) : NULL;
	const struct sandbox_option *o;

	must(copy && one && two);
	check_z(two, one);
	for (size_t i = 0; (o = option_row(i)); i++) {
		const void *a = option_at(sb, o), *b = option_at(copy, o);

		if (o->type >= OPTION_SIZE && o->type <= OPTION_TIME)
			check(*(const uint64_t *)a == *(const uint64_t *)b);
		else if (o->type == OPTION_TEXT && *(char *const *)a)
			check_z(*(char *const *)b, *(char *const *)a);
		else if (o->type == OPTION_TEXTS)
			check_int((long)strv_count(*(char *const *const *)b),
				(long)strv_count(*(char *const *const *)a));
	}
	check_int((long)copy->mounts_n, (long)sb->mounts_n);
}

static void test_record(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = full();
	_cleanup_(freep) char *text = sandbox_describe(sb);
	const struct sandbox_option *o;

	must(text != NULL);
	for (size_t i = 0; (o = option_row(i)); i++) {
		char key[64];

		snprintf(key, sizeof(key), "\"%s\":", o->record ? o->record : "limits");
		if (!strstr(text, key))
			printf("# no %s in %s\n", key, text);
		check(strstr(text, key) != NULL);
	}
	check(!strstr(text, "a-value-of-an-option"));
}

static void test_record_says_whether_it_is_recorded(void)
{
	static const struct {
		const char *runtime, *record, *said;
	} rows[] = {{NULL, NULL, "none"}, {"shell", NULL, "none"}, {"node", NULL, "ops"},
		{"python", NULL, "ops"}, {"python", "none", "none"}, {"shell", "ops", "ops"},
		{NULL, "full", "full"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
		_cleanup_(freep) char *text = NULL;
		char said[32];

		must(sb && cloche_sandbox_set(sb, "runtime", rows[i].runtime, &err) == 0);
		must(cloche_sandbox_set(sb, "record", rows[i].record, &err) == 0);
		text = sandbox_describe(sb);
		snprintf(said, sizeof(said), "\"record\": \"%s\"", rows[i].said);
		check(text && strstr(text, said));
	}
}

/* A configuration that was written and read back says the same when it is written again. */
static void test_store(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = full(), *back = NULL;
	_cleanup_(buf_donep) struct buf a = BUF_INIT(SANDBOX_STORE_MAX), b = a;
	_cleanup_(strv_freep) char **secrets = NULL;

	must(sandbox_store(sb, NULL, &a, &err) == 0);
	check_int(sandbox_load(buf_str(&a), &back, &secrets, &err), 0);
	must(back != NULL);
	check(strv_count(secrets) > 0);
	check_int(sandbox_store(back, secrets, &b, &err), 0);
	check(str_eq(buf_str(&a), buf_str(&b)));
	check(str_find(buf_str(&a), STR("a-value-of-an-option")) == buf_len(&a));
	check_int(sandbox_load(STR("[1"), &back, &secrets, &err), -E_CORRUPT);
	check_int(sandbox_load(STR("{\"workspace\": 1}"), &back, &secrets, &err), -E_CORRUPT);
	check_int(sandbox_load(STR("{\"connect_to\": [[\"aA==\", 443, \"aA==\", 8443]]}"), &back,
			  &secrets, &err),
		-E_UNSUPPORTED);
}

int main(void)
{
	run_test(test_all_have_a_case);
	run_test(test_set_by_name);
	run_test(test_optional_limits);
	run_test(test_bad_values);
	run_test(test_unknown_and_missing);
	run_test(test_taken_away);
	run_test(test_repeated);
	run_test(test_images_elsewhere);
	run_test(test_commands_elsewhere);
	run_test(test_copy);
	run_test(test_record);
	run_test(test_record_says_whether_it_is_recorded);
	run_test(test_store);
	return tap_done();
}
