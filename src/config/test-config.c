/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: setters that refuse what makes no sense, and the file that fills them. */
#include "fs/fs.h"
#include "sandbox/sandbox.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static cloche_err err;
static char dir[TAP_DIR_BYTES];

static int load(cloche_sandbox *sb, const char *yaml)
{
	_cleanup_(freep) char *path = fs_join(dir, "sandbox.yaml");

	memset(&err, 0, sizeof(err));
	must(path && fs_write_atomic(AT_FDCWD, path, str_from(yaml), 0600, false, &err) == 0);
	return cloche_sandbox_load_config(sb, path, &err);
}

static void test_a_whole_file(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	const struct masked_secret *m;

	setenv("TEST_TOKEN", "ghp_0123456789abcdefghijklmnopqrstuvwxyz", 1);
	setenv("TEST_PASSED", "yes", 1);
	setenv("TEST_KEY_ID", "AKIAIOSFODNN7EXAMPLE", 1);
	unsetenv("TEST_UNSET");
	check_int(
		load(sb, "env:\n"
			 "  CI: \"true\"\n"
			 "  N: 5\n"
			 "  FROM: !env TEST_PASSED\n"
			 "pass_env: [TEST_PASSED, TEST_UNSET]\n"
			 "masked_secrets:\n"
			 "  GH_TOKEN:\n"
			 "    value: !env TEST_TOKEN\n"
			 "    scopes: [api.github.com, \"*.githubusercontent.com\"]\n"
			 "    headers: [Authorization]\n"
			 "    allow_foreign_credentials: yes\n"
			 "signing_credentials:\n"
			 "  aws: {type: aws-sigv4, access_key_id: !env TEST_KEY_ID,\n"
			 "        secret_access_key: wJalrXUtnFEMI/K7MDENG, session_token: \"\",\n"
			 "        scopes: [\"*.amazonaws.com\"]}\n"
			 "network_sandbox: true\n"
			 "resource_limits: {memory: 2g, cpus: 1.5, pids_limit: 256, timeout: 90,\n"
			 "                  nofile: 100, file_size: 1g, tmpfs_size: 512m, "
			 "record_limit: 2m}\n"),
		0);
	check_z(err.message, "");
	check_z(strv_env_get(sb->env, "CI"), "true");
	check_z(strv_env_get(sb->env, "N"), "5");
	check_z(strv_env_get(sb->env, "FROM"), "yes");
	check_z(strv_env_get(sb->env, "TEST_PASSED"), "yes");
	check(!strv_env_get(sb->env, "TEST_UNSET"));
	check(!strv_env_get(sb->env, "GH_TOKEN"));
	must(sb->secrets && (m = secret_set_find(sb->secrets->set, STR("GH_TOKEN"))));
	check(str_eq(secret_reveal(m->value), STR("ghp_0123456789abcdefghijklmnopqrstuvwxyz")));
	check_int(strv_count(m->spec.scopes), 2);
	check(m->spec.allow_foreign_credentials);
	must((m = secret_set_find(sb->secrets->set, STR("TEST_KEY_ID"))));
	check(str_eq(secret_reveal(m->value), STR("AKIAIOSFODNN7EXAMPLE")) && !m->spec.headers);
	check(secret_set_find(sb->secrets->set, STR("AWS_SECRET_ACCESS_KEY")));
	check(!secret_set_find(sb->secrets->set, STR("AWS_SESSION_TOKEN")));
	check_int(sb->net, SANDBOX_NET_GATEWAY);
	check(sandbox_wants_gateway(sb));
	check(sb->limits.memory_bytes == 2ULL << 30 && sb->limits.cpus_milli == 1500 &&
		sb->limits.pids == 256);
	check_int(sb->timeout_ms, 90000);
	check(sb->limits.nofile == 100 && sb->limits.file_bytes == 1ULL << 30 &&
		sb->limits.tmpfs_bytes == 512U << 20);
	check_int(sb->record_limit, 2 << 20);
}

/* Every option that a file may have, as the option itself reads it. */
static void test_options_are_keys(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(freep) char *variables = fs_join(dir, "variables");

	must(variables && fs_write_atomic(AT_FDCWD, variables, STR("OF_A_FILE=yes\n"), 0600, false,
				  &err) == 0);
	check_int(load(sb, "tools: [sh]\n"
			   "allow: [a.test, \"https://b.test/x\"]\n"
			   "mounts:\n"
			   "- /usr/share:/data:ro\n"
			   "- ~/:/home-of-mine\n"
			   "ports: [\"8080:80\", \"0:81\"]\n"
			   "user: 12:34\n"
			   "workdir: /data\n"
			   "root: /usr\n"
			   "nested: true\n"
			   "provider: native\n"
			   "connect_to: a.test:443:127.0.0.1:8443\n"
			   "allow_write: .vscode\n"
			   "timeout: 90\n"
			   "output_limit: 1m\n"
			   "limits: {memory: 1g, pids: 99}\n"
			   "resource_limits: {cpus: 2}\n"
			   "pull: never\n"
			   "record: full\n"
			   "env_file: [~/variables]\n"
			   "network_log: ~/log\n"
			   "keep_changes: ~/kept\n"),
		0);
	check_z(err.message, "");
	must(sb->mounts_n >= 2);
	check_z(sb->mounts[0].target, "/data");
	check(sb->mounts[0].ro && !sb->mounts[1].ro);
	check(str_starts(str_from(sb->mounts[1].source), str_from(dir)));
	check_z(sb->mounts[1].target, "/home-of-mine");
	check_int(cloche_allowlist_count(sb->allowlist), 2);
	check_int(strv_count(sb->published), 2);
	check_z(sb->user, "12:34");
	check_z(sb->workdir, "/data");
	check_z(sb->root_dir, "/usr");
	check(sb->nested);
	check_z(sb->provider, "native");
	check_int(strv_count(sb->connect_to), 1);
	check_int(strv_count(sb->opened), 1);
	check_int(sb->timeout_ms, 90000);
	check_int(sb->output_limit, 1 << 20);
	check(sb->limits.memory_bytes == 1 << 30 && sb->limits.pids == 99 &&
		sb->limits.cpus_milli == 2000);
	check_z(sb->kept_record, "full");
	check_z(strv_env_get(sb->env, "OF_A_FILE"), "yes");
	check(str_starts(str_from(sb->network_log), str_from(dir)));
	check(str_starts(str_from(sb->keep_changes), str_from(dir)));
	check_int(load(sb, "nested: false\nallow: c.test\nlimits: best-effort\n"), 0);
	check(!sb->nested && sb->best_effort);
	check_int(cloche_allowlist_count(sb->allowlist), 3);
}

/* What the command line says is not even looked at; what adds up does. */
static void test_a_settled_option_is_left(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(cloche_sandbox_settle(sb, "root", &err), 0);
	check_int(cloche_sandbox_settle(sb, "memory", &err), 0);
	check_int(cloche_sandbox_settle(sb, "allow", &err), 0);
	check_int(cloche_sandbox_settle(sb, "nonsense", &err), -CLOCHE_E_USAGE);
	check_int(load(sb, "image: no-such-image\nroot: /no/such/place\nallow: [a.test]\n"
			   "limits: {memory: 1g, pids: 50}\n"),
		0);
	check(!sb->root_dir && !sb->image && sb->limits.memory_bytes == 0);
	check_int(sb->limits.pids, 50);
	check_int(cloche_allowlist_count(sb->allowlist), 1);
}

static void put_own(const char *yaml, unsigned mode)
{
	_cleanup_(freep) char *folder = fs_join(dir, "own/cloche");
	_cleanup_(freep) char *path = folder ? fs_join(folder, "config.yaml") : NULL;

	must(path && fs_mkdirs(folder, 0700, &err) == 0);
	must(fs_write_atomic(AT_FDCWD, path, str_from(yaml), 0600, false, &err) == 0);
	must(chmod(path, mode) == 0);
}

static void test_ones_own_file(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(freep) char *folder = fs_join(dir, "own");

	must(folder && setenv("XDG_CONFIG_HOME", folder, 1) == 0);
	check_int(cloche_sandbox_load_config(sb, NULL, &err), 0);
	put_own("limits: {memory: 2g}\nallow: [a.test]\n", 0644);
	check_int(cloche_sandbox_load_config(sb, NULL, &err), 0);
	check(sb->limits.memory_bytes == 2ULL << 30);
	check_int(cloche_allowlist_count(sb->allowlist), 1);
	put_own("limits: {memory: 1g}\n", 0646);
	check_int(cloche_sandbox_load_config(sb, NULL, &err), -CLOCHE_E_DENIED);
	check(sb->limits.memory_bytes == 2ULL << 30);
	put_own("alow: [a.test]\n", 0600);
	check_int(cloche_sandbox_load_config(sb, NULL, &err), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "/own/cloche/config.yaml:1:1: unknown key"));
	must(unsetenv("XDG_CONFIG_HOME") == 0);
}

/* A variable that is passed wins over what the file says, whichever key comes first, if the
 * caller has it. */
static void test_pass_env_wins(void)
{
	static const char *const files[] = {
		"env: {TEST_PASSED: file, TEST_UNSET: file, OTHER: file}\n"
		"pass_env: [OTHER_STILL, TEST_PASSED, TEST_UNSET]\n",
		"pass_env: [OTHER_STILL, TEST_PASSED, TEST_UNSET]\n"
		"env: {TEST_PASSED: file, TEST_UNSET: file, OTHER: file}\n",
		"pass_env: [TEST_PASSED, TEST_UNSET]\n"
		"container_env: {TEST_PASSED: file, TEST_UNSET: file, OTHER: file}\n",
	};

	setenv("TEST_PASSED", "caller", 1);
	setenv("OTHER", "caller", 1);
	unsetenv("TEST_UNSET");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		check_int(load(sb, files[i]), 0);
		check_z(strv_env_get(sb->env, "TEST_PASSED"), "caller");
		check_z(strv_env_get(sb->env, "TEST_UNSET"), "file");
		check_z(strv_env_get(sb->env, "OTHER"), "file");
	}
}

static void test_a_wrong_key_gets_the_right_one(void)
{
	static const struct {
		const char *yaml, *hint;
	} cases[] = {
		{"enw: {}\n", "did you mean env?"},
		{"masked_secret: {}\n", "did you mean masked_secrets?"},
		{"volumes: []\n", "use mounts"},
		{"tool: []\n", "did you mean tools?"},
		{"resource_limits: {memry: 1g}\n", "did you mean memory?"},
		{"resource_limits: {cpu: 1}\n", "use cpus"},
		{"domains: [one.test]\n", "network-allowlist.yaml, beside this file"},
		{"srt_settings: x\n", "for the command line alone"},
		{"allow: [127.0.0.1]\n", "host.cloche.internal"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		err = (struct cloche_err)CLOCHE_ERR_INIT;
		check(load(sb, cases[i].yaml) < 0);
		if (!strstr(err.hint, cases[i].hint))
			tap_fail("%s: %s", cases[i].yaml, err.hint);
	}
}

static void test_what_is_wrong_is_named_with_its_line(void)
{
	static const struct {
		const char *yaml, *message;
	} cases[] = {
		{"enw: {}\n", "sandbox.yaml:1:1: unknown key \"enw\""},
		{"env: [A]\n", "sandbox.yaml:1:6: expected a mapping of variables"},
		{"env:\n  A: !env TEST_UNSET\n", "TEST_UNSET is not set"},
		{"env:\n  A: !file x\n", "sandbox.yaml:2:6: unknown tag"},
		{"env:\n  A: null\n", "sandbox.yaml:2:6: the value is missing"},
		{"env: {A: ~}\n", "sandbox.yaml:1:10: the value is missing"},
		{"env:\n  A:\n", "the value is missing"},
		{"pass_env: [~]\n", "sandbox.yaml:1:12: the value is missing"},
		{"resource_limits: {memory: \"null\"}\n", "memory \"null\": use a size"},
		{"resource_limits: {memory: !env }\n", "1:27: the value of an option stands"},
		{"allow:\n- a.test\n- !env TEST_TOKEN\n", "3:3: the value of an option stands"},
		{"allow: {a.test: 1}\n", "1:8: expected a plain value, or a list of them"},
		{"allow: [[a.test]]\n", "1:9: expected a plain value"},
		{"allow: [a.test, ~]\n", "1:17: the value is missing"},
		{"user: [me]\n", "1:7: expected a plain value"},
		{"mounts:\n- /no/such/place\n", "2:3: mount /no/such/place: "},
		{"mounts: [\"/usr:/x:wo\"]\n", "1:10: --mount: use SRC[:DST[:ro]]"},
		{"ports: [\"8080\"]\n", "1:9: "},
		{"nested: perhaps\n", "1:9: expected true or false"},
		{"provider: No/such\n", "1:11: "},
		{"limits: sometimes\n", "1:9: --limits is strict or best-effort"},
		{"timeout: soon\n", "1:10: timeout \"soon\": use a time"},
		{"user: a\nuser: b\n", "2:1: this key is given twice"},
		{"resource_limits: {memory: lots}\n", "1:27: memory \"lots\": use a size"},
		{"resource_limits: {timeout: -1}\n", "1:28: timeout \"-1\": use a time"},
		{"resource_limits: {nofile: 3}\n", "use a number from 64"},
		{"resource_limits: {pids_limit: [1]}\n", "expected a plain value"},
		{"network_sandbox: maybe\n", "expected true or false"},
		{"env: {A: b}\n---\nnetwork_sandbox: false\n", "3:1: expected one document"},
		{"env: {A: b}\n---\n", "expected one document"},
		{"env: {A: b}\n...\n]\n", "3:1: "},
		{"masked_secrets:\n  X: {value: abcdefghijkl}\n",
			"needs value, scopes and headers"},
		{"masked_secrets:\n  X: {value: short, scopes: [a.b], headers: [h]}\n", "X"},
		{"masked_secrets:\n  X: {value: , scopes: [a.b], headers: [h]}\n",
			"needs value, scopes and headers"},
		{"masked_secrets:\n  X: {value: abcdefghijkl, scopes: , headers: [h]}\n",
			"needs value, scopes and headers"},
		{"masked_secrets:\n  X: {value: abcdefghijkl, scopes: [~], headers: [h]}\n",
			"the value is missing"},
		{"masked_secrets:\n  X:\n", "expected a mapping (name: value)"},
		{"github_app_credentials:\n  X: {app_id: 1, permissions: }\n",
			"2:31: expected a mapping (permission"},
		{"github_app_credentials:\n  X: {app_id: 1, repositories: ~}\n",
			"2:32: expected a list"},
		{"signing_credentials:\n  AWS: {type: aws-sigv4}\n",
			"sandbox.yaml:2:8: signing credentials need"},
		{"signing_credentials:\n  AWS: {type: gcp}\n", "2:15: the only type"},
		{"signing_credentials: [a]\n", "expected a mapping"},
		{"signing_credentials:\n  AWS: {access_key_id: !env TEST_UNSET}\n",
			"TEST_UNSET is not set"},
		{"signing_credentials:\n  AWS: {type: aws-sigv4, access_key_id: AKIA/OSFODNN7EXA, "
		 "secret_access_key: abcdefghijkl, scopes: [a.b]}\n",
			"signing credentials AWS: secret AWS_ACCESS_KEY_ID: not the form"},
		{"env: {A: b\n", "sandbox.yaml:2:1"},
		{"env: {A: b}\nenv: {}\n", "sandbox.yaml:2:1: this key is given twice"},
		{"env: {A: b, B: c, A: d}\n", "sandbox.yaml:1:19: this variable is given twice"},
		{"masked_secrets:\n  X: {value: abcdefghijkl, scopes: [a.b], headers: [h], "
		 "scopes: [c.d]}\n",
			"this key is given twice"},
	};

	unsetenv("TEST_UNSET");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		check(load(sb, cases[i].yaml) < 0);
		if (!strstr(err.message, cases[i].message))
			tap_fail("case %zu: \"%s\" does not say \"%s\"", i, err.message,
				cases[i].message);
	}
}

static void test_an_empty_file_changes_nothing(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(load(sb, ""), 0);
	check_int(load(sb, "# nothing\n"), 0);
	check(!sandbox_wants_gateway(sb));
}

/* A key without a value, as if everything below it is commented out, is a key that is not there. */
static void test_a_key_without_a_value_changes_nothing(void)
{
	static const char *const files[] = {
		"env:\ncontainer_env: ~\npass_env:\nmasked_secrets:\nsigning_credentials:\n"
		"github_app_credentials:\nnetwork_sandbox:\nupstream_dns: null\nplace:\n"
		"resource_limits:\n",
		"env:\n  # A: b\nresource_limits: {memory: , cpus: ~, timeout: NULL}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

		check_int(load(sb, files[i]), 0);
		check_z(err.message, "");
		check(!sandbox_wants_gateway(sb));
		check_int(sb->net, SANDBOX_NET_AUTO);
		check(sb->limits.memory_bytes == 0 && sb->limits.cpus_milli == 0);
		check_int(sb->timeout_ms, 0);
		check(!sb->secrets && !sb->upstream_dns && !sb->place);
	}
}

/* As a repository's configuration has it. */
static void test_container_env(void)
{
	static const char yaml[] = "# In .airut/airut.yaml (repo config)\n"
				   "container_env:\n"
				   "  GH_TOKEN: !secret TEST_TOKEN              # Required\n"
				   "  KEY: !secret? TEST_KEY  # Optional\n"
				   "  OTHER: !secret? TEST_UNSET\n";
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	setenv("TEST_TOKEN", "t", 1);
	setenv("TEST_KEY", "k", 1);
	unsetenv("TEST_UNSET");
	check_int(load(sb, yaml), 0);
	check_z(strv_env_get(sb->env, "GH_TOKEN"), "t");
	check_z(strv_env_get(sb->env, "KEY"), "k");
	check(!strv_env_get(sb->env, "OTHER"));
	check_int(
		load(sb, "timeout: 300\nnetwork: {sandbox_enabled: false}\ndefault_model: opus\n"),
		0);
	check_int(sb->timeout_ms, 300000);
	check_int(sb->net, SANDBOX_NET_NONE);
	check_z(strv_env_get(sb->env, "ANTHROPIC_MODEL"), "opus");
	check(load(sb, "network: {sandbox_enable: false}\n") < 0);
	check(strstr(err.message, "unknown key \"sandbox_enable\""));
	unsetenv("TEST_TOKEN");
	check(load(sb, yaml) < 0);
	check(strstr(err.message, "TEST_TOKEN is not set"));
}

static void test_network_off_means_off(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(load(sb, "network_sandbox: false\n"), 0);
	check_int(sb->net, SANDBOX_NET_NONE);
}

static void test_place(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(load(sb, "place: me@build.example\n"), 0);
	check_z(sb->place, "me@build.example");
	check(load(sb, "place: \"a\\nb\"\n") < 0);
	check(strstr(err.message, ":1:8: --place") != NULL);
	check(load(sb, "place: [a]\n") < 0);
	check_z(sb->place, "me@build.example");
}

static void test_connect_to(void)
{
	static const struct {
		const char *rule, *host, *address;
		int port, to_port;
	} good[] = {
		{"a.example:443:127.0.0.1:8443", "a.example", "127.0.0.1", 443, 8443},
		{"A.example:443:[::1]:1", "a.example", "[::1]", 443, 1},
		{"[2001:db8::1]:80:other:65535", "[2001:db8::1]", "other", 80, 65535},
	};
	static const char *const bad[] = {"", "a", "a:1", "a:1:b", "a:1:b:", "a:0:b:1",
		"a:1:b:65536", ":1:b:1", "a:x:b:1", "a:1::1", "[::1:1:b:1", "a:1:b:1:2",
		"a b:1:c:1", "*.a:1:c:1", "127.1:1:c:1", "::1:1:c:1", "a:1:127.1:1", "a:1:b c:1",
		"a:1:b:0", "[::1]1:c:1"};
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct sandbox_connect_to c;

		check_int(cloche_sandbox_set(sb, "connect-to", good[i].rule, &err), 0);
		must(strv_count(sb->connect_to) == i + 1);
		must(sandbox_parse_connect_to(sb->connect_to[i], &c));
		check_str(host_str(&c.host), good[i].host);
		check_str(host_str(&c.address), good[i].address);
		check_int(c.port, good[i].port);
		check_int(c.to_port, good[i].to_port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (cloche_sandbox_set(sb, "connect-to", bad[i], &err) != -CLOCHE_E_USAGE)
			tap_fail("\"%s\" was taken", bad[i]);
}

static void test_limits_from_text(void)
{
	static const char *const bad[][2] = {{"memory", "0"}, {"memory", "12q"}, {"memory", ""},
		{"cpus", "0.001"}, {"cpus", "-1"}, {"pids", "0"}, {"pids", "1"}, {"pids", "1e3"},
		{"timeout", "0"}, {"timeout", "5 m"}, {"output-limit", "x"}, {"nonsense", "1"}};
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(cloche_sandbox_set(sb, "timeout", "500ms", &err), 0);
	check_int(sb->timeout_ms, 500);
	check_int(cloche_sandbox_set(sb, "cpus", "0.5", &err), 0);
	check_int(sb->limits.cpus_milli, 500);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (cloche_sandbox_set(sb, bad[i][0], bad[i][1], &err) != -CLOCHE_E_USAGE)
			tap_fail("%s \"%s\" was taken", bad[i][0], bad[i][1]);
}

static void test_workspace_is_writable(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	check_int(cloche_sandbox_set(sb, "workspace", dir, &err), 0);
	must(sb->mounts_n == 1);
	check_z(sb->mounts[0].target, "/workspace");
	check(!sb->mounts[0].ro);
	check_int(cloche_sandbox_set(sb, "workspace", "/", &err), -CLOCHE_E_USAGE);
	check_int(cloche_sandbox_set(sb, "workspace", "/no/such/place", &err), -CLOCHE_E_SYSTEM);
}

static void test_a_later_secret_replaces_one_of_its_name(void)
{
	static const char *const hosts[] = {"a.example", NULL}, *const headers[] = {"h", NULL};
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(cloche_secrets_freep) cloche_secrets *one = cloche_secrets_new();
	_cleanup_(cloche_secrets_freep) cloche_secrets *two = cloche_secrets_new();
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = NULL;
	const struct masked_secret *m;

	must(cloche_secrets_add(one, "A", "first-value-1", 13, hosts, headers, false, &err) == 0);
	must(cloche_secrets_add(one, "B", "other-value-2", 13, hosts, headers, false, &err) == 0);
	must(cloche_secrets_add(two, "A", "second-value3", 13, hosts, headers, false, &err) == 0);
	check_int(cloche_sandbox_add_secrets(sb, one, &err), 0);
	check_int(cloche_sandbox_add_secrets(sb, two, &err), 0);
	check_int(cloche_secrets_count(sb->secrets), 2);
	must((m = secret_set_find(sb->secrets->set, STR("A"))));
	check(str_eq(secret_reveal(m->value), STR("second-value3")));
	copy = sandbox_copy(sb);
	must(copy);
	check_z(cloche_secrets_surrogate(copy->secrets, 0),
		cloche_secrets_surrogate(sb->secrets, 0));
}

int main(void)
{
	tap_dir(dir);
	must(setenv("HOME", dir, 1) == 0 && unsetenv("XDG_CONFIG_HOME") == 0);
	run_test(test_a_whole_file);
	run_test(test_options_are_keys);
	run_test(test_a_settled_option_is_left);
	run_test(test_ones_own_file);
	run_test(test_pass_env_wins);
	run_test(test_what_is_wrong_is_named_with_its_line);
	run_test(test_a_wrong_key_gets_the_right_one);
	run_test(test_an_empty_file_changes_nothing);
	run_test(test_a_key_without_a_value_changes_nothing);
	run_test(test_container_env);
	run_test(test_network_off_means_off);
	run_test(test_place);
	run_test(test_connect_to);
	run_test(test_limits_from_text);
	run_test(test_workspace_is_writable);
	run_test(test_a_later_secret_replaces_one_of_its_name);
	(void)fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
