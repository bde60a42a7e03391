/* SPDX-License-Identifier: Apache-2.0 */
#include "config/agentgate.h"
#include "sandbox/sandbox.h"
#include "tap.h"

static struct cloche_err err;
static char told[512];

static void keep_told(const char *text, void *user)
{
	snprintf(told, sizeof(told), "%s", text);
}

static void forget_all(void)
{
	static const char *const names[] = {"SANDBOX_PROVIDER", "SANDBOX_NETWORK",
		"SANDBOX_NETWORK_MODE", "SANDBOX_CPU_LIMIT", "SANDBOX_CPU_COUNT",
		"SANDBOX_MEMORY_MB", "SANDBOX_TIMEOUT", "SANDBOX_TIMEOUT_SECONDS", "SANDBOX_IMAGE",
		"SANDBOX_USER", "SANDBOX_AUTO_CLEANUP_MINUTES", "SANDBOX_CLEANUP_INTERVAL_MS",
		"MAX_CONCURRENT_RUNS", "SDK_ENABLE_SANDBOX", "SANDBOX_DISK_MB", "OTHER"};
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "AGENTGATE_%s", names[i]);
		unsetenv(name);
	}
}

static void set(const char *name, const char *value)
{
	char full[64];

	snprintf(full, sizeof(full), "AGENTGATE_%s", name);
	must(setenv(full, value, 1) == 0);
}

/* What everything comes to with one variable. */
static int read_with(
	const char *name, const char *value, cloche_sandbox **ret_sb, struct agentgate *ret)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	int r;

	must(sb != NULL);
	forget_all();
	set(name, value);
	told[0] = '\0';
	err = (struct cloche_err)CLOCHE_ERR_INIT;
	r = agentgate_read(sb, ret, NULL, keep_told, NULL, &err);
	if (ret_sb)
		*ret_sb = sb;
	else
		cloche_sandbox_free(sb);
	return r;
}

static void each_does_what_it_says(void)
{
	struct agentgate a;
	cloche_sandbox *sb;

	check_int(read_with("SANDBOX_PROVIDER", "local", &sb, &a), 0);
	check_z(sb->provider, "subprocess");
	check(a.cleanup_ms == 300000 && a.max_runs == 5 && a.sandboxed);
	cloche_sandbox_free(sb);
	check_int(read_with("SANDBOX_USER", "agentgate:1000", &sb, &a), 0);
	check_z(sb->user, "agentgate:1000");
	cloche_sandbox_free(sb);
	for (int i = 0; i < 2; i++) {
		check_int(
			read_with(i ? "SANDBOX_NETWORK" : "SANDBOX_NETWORK_MODE", "none", &sb, &a),
			0);
		check_int(sb->net, SANDBOX_NET_NONE);
		cloche_sandbox_free(sb);
		check_int(read_with(i ? "SANDBOX_CPU_LIMIT" : "SANDBOX_CPU_COUNT", "1.5", &sb, &a),
			0);
		check_int(sb->limits.cpus_milli, 1500);
		cloche_sandbox_free(sb);
		check_int(
			read_with(i ? "SANDBOX_TIMEOUT" : "SANDBOX_TIMEOUT_SECONDS", "90", &sb, &a),
			0);
		check_int(sb->timeout_ms, 90000);
		cloche_sandbox_free(sb);
	}
	check_int(read_with("SANDBOX_MEMORY_MB", "512", &sb, &a), 0);
	check_int(sb->limits.memory_bytes, 512 << 20);
	cloche_sandbox_free(sb);
	check_int(read_with("SANDBOX_AUTO_CLEANUP_MINUTES", "7", NULL, &a), 0);
	check_int(a.cleanup_ms, 7 * 60000);
	check_int(read_with("SANDBOX_CLEANUP_INTERVAL_MS", "0", NULL, &a), 0);
	check_int(a.cleanup_ms, 0);
	check_int(read_with("MAX_CONCURRENT_RUNS", "9", NULL, &a), 0);
	check_int(a.max_runs, 9);
	check_int(read_with("SDK_ENABLE_SANDBOX", "false", NULL, &a), 0);
	check(!a.sandboxed);
	check_int(read_with("SDK_ENABLE_SANDBOX", "1", NULL, &a), 0);
	check(a.sandboxed);
}

static void ranges_end_where_they_end(void)
{
	static const struct {
		const char *name, *taken[2], *refused[2];
	} rows[] = {
		{"SANDBOX_CPU_LIMIT", {"0.5", "16"}, {"0.49", "16.1"}},
		{"SANDBOX_CPU_COUNT", {"1", "16"}, {"0.5", "17"}},
		{"SANDBOX_MEMORY_MB", {"256", "32768"}, {"255", "32769"}},
		{"SANDBOX_TIMEOUT", {"60", "86400"}, {"59", "86401"}},
		{"SANDBOX_TIMEOUT_SECONDS", {"60", "86400"}, {"59", "86401"}},
		{"SANDBOX_AUTO_CLEANUP_MINUTES", {"1", "60"}, {"0", "61"}},
		{"SANDBOX_CLEANUP_INTERVAL_MS", {"0", "3600000"}, {"-1", "3600001"}},
		{"MAX_CONCURRENT_RUNS", {"1", "100"}, {"0", "101"}},
	};
	static const char *const no_numbers[] = {"4g", "many", "1e3", "0x100", "300 ", " 300",
		"300.", ".5", "300.5.5", "nan", "inf", "99999999999999999999", "+300",
		"1.0000000000000000"};
	struct agentgate a;
	char full[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t k = 0; k < 2; k++) {
			check_int(read_with(rows[i].name, rows[i].taken[k], NULL, &a), 0);
			check_int(read_with(rows[i].name, rows[i].refused[k], NULL, &a), -E_USAGE);
			snprintf(full, sizeof(full), "AGENTGATE_%s=%s ", rows[i].name,
				rows[i].refused[k]);
			check(strstr(err.message, full) && strstr(err.message, rows[i].taken[0]) &&
				strstr(err.message, rows[i].taken[1]) && err.hint[0]);
		}
		for (size_t k = 0; k < ARRAY_SIZE(no_numbers); k++)
			check_int(read_with(rows[i].name, no_numbers[k], NULL, &a), -E_USAGE);
	}
}

static void what_cannot_be_is_refused(void)
{
	static const char *const rows[][2] = {{"SANDBOX_PROVIDER", "no such"},
		{"SANDBOX_NETWORK", "bridge"}, {"SANDBOX_NETWORK_MODE", "host"},
		{"SANDBOX_DISK_MB", "1"}, {"SANDBOX_USER", ":"}, {"SDK_ENABLE_SANDBOX", "maybe"}};
	struct agentgate a;
	char full[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_int(read_with(rows[i][0], rows[i][1], NULL, &a), -E_USAGE);
		snprintf(full, sizeof(full), "AGENTGATE_%s", rows[i][0]);
		check(strstr(err.message, full));
	}
	/* Without a program that asks a registry. */
	setenv("PATH", "/nowhere", 1);
	check_int(read_with("SANDBOX_IMAGE", "no/such:image", NULL, &a), -E_NOT_FOUND);
	check(strstr(err.message, "cannot be pulled"));
	/* Of other things than sandboxes there may be any. */
	check_int(read_with("OTHER", "1", NULL, &a), 0);
	check_int(read_with("SANDBOX_DISK_MB", "", NULL, &a), 0);
	check_int(read_with("SANDBOX_TIMEOUT", "", NULL, &a), 0);
}

static void of_two_that_disagree_the_first_wins(void)
{
	struct agentgate a;
	cloche_sandbox *sb = cloche_sandbox_new();

	must(sb != NULL);
	forget_all();
	set("SANDBOX_CPU_COUNT", "3");
	set("SANDBOX_CPU_LIMIT", "2");
	check_int(agentgate_read(sb, NULL, NULL, keep_told, NULL, &err), 0);
	check_int(sb->limits.cpus_milli, 2000);
	check_z(told, "AGENTGATE_SANDBOX_CPU_LIMIT=2 wins over AGENTGATE_SANDBOX_CPU_COUNT=3");
	/* The same in other words is no conflict. */
	forget_all();
	set("SANDBOX_AUTO_CLEANUP_MINUTES", "5");
	set("SANDBOX_CLEANUP_INTERVAL_MS", "300000");
	told[0] = '\0';
	check_int(agentgate_read(sb, &a, NULL, keep_told, NULL, &err), 0);
	check_z(told, "");
	set("SANDBOX_CLEANUP_INTERVAL_MS", "300001");
	check_int(agentgate_read(sb, &a, NULL, keep_told, NULL, &err), 0);
	check_int(a.cleanup_ms, 300000);
	check(told[0]);
	/* One that cannot be is refused, also if it loses. */
	set("SANDBOX_CLEANUP_INTERVAL_MS", "soon");
	check_int(agentgate_read(sb, &a, NULL, NULL, NULL, &err), -E_USAGE);
	cloche_sandbox_free(sb);
}

static void options_take_their_place(void)
{
	static const char *const given[] = {"timeout", "provider", "allow", NULL};
	cloche_sandbox *sb = cloche_sandbox_new();

	must(sb != NULL);
	forget_all();
	set("SANDBOX_TIMEOUT", "90");
	set("SANDBOX_PROVIDER", "no such");
	set("SANDBOX_MEMORY_MB", "300");
	set("SANDBOX_NETWORK", "none");
	set("MAX_CONCURRENT_RUNS", "of no interest to one sandbox");
	check_int(cloche_sandbox_load_environment(sb, given, keep_told, NULL, &err), 0);
	check_int(sb->timeout_ms, 0);
	check_int(sb->limits.memory_bytes, 300 << 20);
	check(strstr(told, "SANDBOX_NETWORK=none: --allow, --allowlist and --preset have"));
	forget_all();
	set("SANDBOX_NETWORK_MODE", "none");
	check_int(cloche_sandbox_load_environment(sb, given, keep_told, NULL, &err), 0);
	check(strstr(told, "SANDBOX_NETWORK_MODE=none: --allow, --allowlist and --preset have"));
	cloche_sandbox_free(sb);
}

int main(void)
{
	run_test(each_does_what_it_says);
	run_test(ranges_end_where_they_end);
	run_test(what_cannot_be_is_refused);
	run_test(of_two_that_disagree_the_first_wins);
	run_test(options_take_their_place);
	return tap_done();
}
