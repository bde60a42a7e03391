/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/buf.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

/* Drivers that tests have asked for; freed at the end. */
static struct agent_driver *known[64];
static size_t known_n;

static const struct agent_driver *get(const char *name)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(known_n < ARRAY_SIZE(known));
	if (agent_driver_get(name, &known[known_n], &err) < 0)
		tap_fail("%s: %s", name ? name : "the default", err.message);
	must(known[known_n]);
	return known[known_n++];
}

static void test_registry(void)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct agent_driver *d = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_z(get(NULL)->name, "claude-code");
	check_z(get("claude-subscription")->name, "claude-subscription");
	check_int(agent_driver_get("gpt", &d, &err), -E_USAGE);
	check(d == NULL);
	check_z(err.message, "unknown driver \"gpt\"; there are: aider, claude, claude-code, "
			     "claude-subscription, codex, gemini, opencode, qwen");
	must(agent_driver_names(&names, NULL) == 0);
	for (size_t i = 0; names[i]; i++) {
		check_z(get(names[i])->name, names[i]);
		check(agent_driver_is(names[i]));
	}
	check(!agent_driver_is("gpt") && !agent_driver_is("../drivers/claude"));
}

static void check_argv(const struct agent_request *rq, const char *want)
{
	_cleanup_(strv_freep) char **argv = NULL;
	_cleanup_(buf_donep) struct buf joined = BUF_INIT(4096);

	must(agent_driver_argv(get(NULL), rq, "/opt/claude/claude", &argv, NULL) == 0);
	for (size_t i = 0; argv[i]; i++)
		must(buf_printf(&joined, "%s|", argv[i]) == 0);
	check_str(buf_str(&joined), want);
}

#define OPTIONS "--dangerously-skip-permissions|--output-format|stream-json|--verbose|"
#define TAIL "-p|-|" OPTIONS

static void test_argv(void)
{
	check_argv(
		&(struct agent_request){.model = NULL}, "/opt/claude/claude|--model|sonnet|" TAIL);
	check_argv(&(struct agent_request){.model = "opus", .resume = "id-1", .effort = "high"},
		"/opt/claude/claude|--resume|id-1|--model|opus|--effort|high|" TAIL);
	check_argv(&(struct agent_request){.max_turns = 7, .system_prompt = "-be X"},
		"/opt/claude/claude|--model|sonnet|" TAIL "--max-turns|7|--system-prompt=-be X|");
	check_argv(&(struct agent_request){.system_prompt = ""},
		"/opt/claude/claude|--model|sonnet|" TAIL "--system-prompt=|");
	check_argv(&(struct agent_request){.is_command = true},
		"/opt/claude/claude|--model|sonnet|-p|" OPTIONS);
}

static void test_argv_takes_no_options_for_values(void)
{
	static const struct agent_request rows[] = {
		{.model = "--help"}, {.model = ""}, {.resume = "-c"}, {.effort = "-p"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(strv_freep) char **argv = NULL;
		struct cloche_err err = CLOCHE_ERR_INIT;

		check_int(agent_driver_argv(get(NULL), &rows[i], "claude", &argv, &err), -E_USAGE);
		check(err.message[0] != '\0');
	}
}

static void test_argv_needs_options(void)
{
	_cleanup_(strv_freep) char **argv = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(agent_driver_argv(get("codex"), &(struct agent_request){.effort = "high"},
			  "codex", &argv, &err),
		-E_USAGE);
	check_z(err.message, "Codex (driver codex) has no option for an effort");
}

static void check_variable(
	const struct agent_environment *env, const char *name, const char *value, bool in_home)
{
	size_t i = 0;

	while (i < env->n && strcmp(env->v[i].name, name) != 0)
		i++;
	must(i < env->n);
	check_z(env->v[i].value, value);
	check(env->v[i].in_home == in_home);
}

static void test_environment(void)
{
	const struct agent_driver *d = get(NULL);

	check_variable(&d->env, "IS_SANDBOX", "1", false);
	check_variable(&d->headless_env, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1", false);
	check_variable(&d->env, "CLAUDE_CONFIG_DIR", ".claude", true);
}

static void test_credentials(void)
{
	const struct agent_key *key = get("claude-code")->keys,
			       *token = get("claude-subscription")->keys;

	check_int(get("claude-code")->keys_n, 1);
	check_int(get("claude-subscription")->keys_n, 1);
	check_int(get("claude")->keys_n, 2);
	check_z(key->env, "ANTHROPIC_API_KEY");
	check_z(key->hosts[0], "api.anthropic.com");
	check_z(key->headers[0], "x-api-key");
	check_z(key->headers[1], "authorization");
	check(key->headers[2] == NULL && key->hosts[1] == NULL);
	check_z(get("claude-code")->hosts[0], "api.anthropic.com");
	check(agent_key_withholds(key, "CLAUDE_CODE_OAUTH_TOKEN"));
	check(!agent_key_withholds(key, "ANTHROPIC_API_KEY"));
	check_z(token->env, "CLAUDE_CODE_OAUTH_TOKEN");
	check_z(token->login.file, ".claude/.credentials.json");
	check_z(token->login.refresh[1], "refreshToken");
	check_z(token->login.url, "https://platform.claude.com/v1/oauth/token");
	check_z(token->login.again, "claude /login");
	check(agent_key_withholds(token, "ANTHROPIC_API_KEY"));
	check(agent_key_withholds(token, "ANTHROPIC_BASE_URL"));
	check(!agent_key_withholds(token, "PATH"));
	check(agent_is_credential(STR("GEMINI_API_KEY")) && !agent_is_credential(STR("PATH")));
}

static void write_file(const char *path, const char *content, unsigned mode)
{
	_cleanup_(freep) char *full = fs_join(dir, path), *parent = strdup(full);

	*strrchr(parent, '/') = '\0';
	must(fs_mkdirs(parent, 0755, NULL) == 0);
	must(fs_write_atomic(AT_FDCWD, full, str_from(content), mode, false, NULL) == 0);
}

static void make_link(const char *to, const char *path)
{
	_cleanup_(freep) char *full = fs_join(dir, path), *parent = strdup(full);

	*strrchr(parent, '/') = '\0';
	must(fs_mkdirs(parent, 0755, NULL) == 0);
	must(symlink(to, full) == 0);
}

static void remove_file(const char *path)
{
	_cleanup_(freep) char *full = fs_join(dir, path);

	must(unlink(full) == 0);
}

/* source is below dir */
static void check_found(
	const struct agent_search *s, const char *source, const char *destination, const char *path)
{
	_cleanup_(agent_program_donep) struct agent_program p = {.path = NULL};
	_cleanup_(freep) char *want = fs_join(dir, source);
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (get(NULL)->output->find(s, &p, &err) < 0) {
		tap_fail("%s was not found: %s", source, err.message);
		return;
	}
	check_z(p.source, want);
	check_z(p.destination, destination);
	check_z(p.path, path);
}

#define ELF "\177ELF"

static void test_find_order(void)
{
	_cleanup_(freep) char *home = fs_join(dir, "home"), *bin = fs_join(dir, "bin"),
			      *path = NULL;
	_cleanup_(freep) char *cwd = fs_join(dir, "work/a/b");
	struct agent_search s = {.home = home, .cwd = cwd};

	must(fs_mkdirs(cwd, 0755, NULL) == 0);
	must(asprintf(&path, "relative::/nonexistent:%s", bin) > 0);
	write_file("work/node_modules/pkg/claude.bin", ELF, 0755);
	make_link("../pkg/claude.bin", "work/node_modules/.bin/claude");
	if (access("/usr/local/bin/claude", F_OK) < 0 && access("/usr/bin/claude", F_OK) < 0)
		check_found(&s, "work/node_modules/pkg/claude.bin", "/opt/claude/claude",
			"/opt/claude/claude");
	write_file("home/.local/share/claude/versions/2", ELF "home", 0755);
	make_link("../share/claude/versions/2", "home/.local/bin/claude");
	check_found(&s, "home/.local/share/claude/versions/2", "/opt/claude/claude",
		"/opt/claude/claude");
	s.path = path;
	write_file("bin/claude", "no program", 0755); /* passed over */
	check_found(&s, "home/.local/share/claude/versions/2", "/opt/claude/claude",
		"/opt/claude/claude");
	write_file("bin/claude", ELF, 0644); /* not executable: passed over */
	check_found(&s, "home/.local/share/claude/versions/2", "/opt/claude/claude",
		"/opt/claude/claude");
	write_file("bin/claude", ELF, 0755);
	check_found(&s, "bin/claude", "/opt/claude/claude", "/opt/claude/claude");
}

static void test_find_package_without_its_install_script(void)
{
	_cleanup_(freep) char *binary = fs_join(dir, "npm/node_modules/.bin/claude");
	struct agent_search s = {.binary = binary};
	struct utsname un;
	bool arm = uname(&un) == 0 && strcmp(un.machine, "aarch64") == 0;

	write_file("npm/node_modules/@anthropic-ai/claude-code/package.json", "{}", 0644);
	write_file("npm/node_modules/@anthropic-ai/claude-code/bin/claude.js", "#!/usr/bin/node\n",
		0755);
	make_link("../@anthropic-ai/claude-code/bin/claude.js", "npm/node_modules/.bin/claude");
	check_found(&s, "npm/node_modules/@anthropic-ai/claude-code", "/opt/claude/package",
		"/opt/claude/package/bin/claude.js");
	if (arm) {
		write_file(
			"npm/node_modules/@anthropic-ai/claude-code-linux-arm64/claude", ELF, 0755);
		check_found(&s, "npm/node_modules/@anthropic-ai/claude-code-linux-arm64/claude",
			"/opt/claude/claude", "/opt/claude/claude");
	} else {
		write_file(
			"npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude", ELF, 0755);
		check_found(&s, "npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
			"/opt/claude/claude", "/opt/claude/claude");
	}
}

static void check_refused(const struct agent_search *s, const char *link)
{
	_cleanup_(agent_program_donep) struct agent_program p = {.path = NULL};
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(get(NULL)->output->find(s, &p, &err), -E_DENIED);
	check(strstr(err.message, link) && strstr(err.message, "leads out of"));
	check(strstr(err.hint, "--agent-binary"));
	check(!p.path && !p.source);
}

/* A room can write the node_modules of its workspace. */
static void test_find_nothing_outside(void)
{
	_cleanup_(freep) char *cwd = fs_join(dir, "ws/a"), *path = NULL, *native = NULL;
	struct agent_search s = {.cwd = cwd};
	struct utsname un;
	bool arm = uname(&un) == 0 && strcmp(un.machine, "aarch64") == 0;

	if (access("/usr/local/bin/claude", F_OK) == 0 || access("/usr/bin/claude", F_OK) == 0)
		return;
	must(asprintf(&path, "%s/node_modules/.bin", cwd) > 0);
	must(asprintf(&native, "ws/a/node_modules/@anthropic-ai/claude-code-linux-%s/claude",
		     arm ? "arm64" : "x64") > 0);
	write_file("secrets/key.sh", "#!/bin/sh\n", 0755);
	write_file("secrets/program", ELF, 0755);
	make_link("../../../../secrets/key.sh", "ws/a/node_modules/.bin/claude");
	check_refused(&s, "ws/a/node_modules/.bin/claude");
	/* npm puts it on the PATH. */
	s.path = path;
	check_refused(&s, "ws/a/node_modules/.bin/claude");
	s.path = NULL;
	/* What stands beside a package. */
	remove_file("ws/a/node_modules/.bin/claude");
	write_file("ws/a/node_modules/@anthropic-ai/claude-code/package.json", "{}", 0644);
	write_file("ws/a/node_modules/@anthropic-ai/claude-code/cli.js", "#!/usr/bin/node\n", 0755);
	make_link("../@anthropic-ai/claude-code/cli.js", "ws/a/node_modules/.bin/claude");
	make_link("../../../../../secrets/program", native);
	check_refused(&s, "ws/a/node_modules/.bin/claude");
	remove_file(native);
	check_found(&s, "ws/a/node_modules/@anthropic-ai/claude-code", "/opt/claude/package",
		"/opt/claude/package/cli.js");
	/* A whole node_modules of another project. */
	write_file("other/node_modules/.bin/claude", "#!/bin/sh\n", 0755);
	remove_file("ws/a/node_modules/.bin/claude");
	make_link("../../other/node_modules", "ws/b/node_modules");
	free(cwd);
	cwd = fs_join(dir, "ws/b");
	s.cwd = cwd;
	check_refused(&s, "ws/b/node_modules/.bin/claude");
}

/* A package.json above a script that is no installed package must not get the whole place mounted.
 */
static void test_find_script_alone(void)
{
	_cleanup_(freep) char *binary = fs_join(dir, "project/bin/agent.sh");
	struct agent_search s = {.binary = binary};

	write_file("project/package.json", "{}", 0644);
	write_file("project/bin/agent.sh", "#!/bin/sh\n", 0755);
	check_found(&s, "project/bin/agent.sh", "/opt/claude/claude", "/opt/claude/claude");
}

static void test_not_found(void)
{
	_cleanup_(freep) char *nothing = fs_join(dir, "nothing");
	struct agent_search s = {.binary = nothing};
	struct agent_program p = {.path = NULL};
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(get(NULL)->output->find(&s, &p, &err), -E_NOT_FOUND);
	check(p.path == NULL);
	s.binary = dir; /* a directory */
	check_int(get(NULL)->output->find(&s, &p, &err), -E_NOT_FOUND);
	if (access("/usr/local/bin/claude", F_OK) < 0 && access("/usr/bin/claude", F_OK) < 0) {
		s = (struct agent_search){.home = nothing, .path = nothing};
		check_int(get(NULL)->output->find(&s, &p, &err), -E_NOT_FOUND);
		check(strstr(err.hint, "npm install") != NULL);
	}
}

static void write_own(const char *name, const char *text)
{
	_cleanup_(freep) char *path = NULL;

	must(asprintf(&path, "config/cloche/drivers/%s.yaml", name) > 0);
	write_file(path, text, 0644);
}

static void test_own_drivers(void)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_(freep) char *config = fs_join(dir, "config");
	const struct agent_driver *d;

	must(setenv("XDG_CONFIG_HOME", config, 1) == 0);
	write_own("mine", "title: Mine\nprogram: mine\n");
	write_own("claude", "base: claude\nhosts: [llm.example.com]\n"
			    "environment: {DISABLE_AUTOUPDATER: \"0\", CACHE: ~/cache}\n");
	write_own("Not a name", "title: no\n");
	d = get("mine");
	check_z(d->program, "mine");
	check(!d->output && d->keys_n == 0);
	d = get("claude"); /* the shipped one, with changes */
	check_z(d->hosts[0], "llm.example.com");
	check(!d->hosts[1]);
	check_z(d->title, "Claude Code");
	check_int(d->keys_n, 2);
	check_variable(&d->env, "DISABLE_AUTOUPDATER", "0", false);
	check_variable(&d->env, "IS_SANDBOX", "1", false);
	check_variable(&d->env, "CACHE", "cache", true);
	check_z(get("claude-code")->hosts[0], "llm.example.com"); /* it builds on that */
	must(agent_driver_names(&names, NULL) == 0);
	check_int(strv_count(names), 9);
	check_z(names[6], "mine");
	check(agent_driver_is("mine"));
	must(unsetenv("XDG_CONFIG_HOME") == 0);
}

static void test_wrong_drivers(void)
{
	static const struct {
		const char *text, *message, *hint;
	} rows[] = {
		{"titel: x\n", "wrong:1:1: unknown key \"titel\"", "did you mean \"title\"?"},
		{"terminal:\n  host: [a]\n", "wrong:2:3: unknown key \"host\"",
			"did you mean \"hosts\"?"},
		{"title: x\n---\ntitle: y\n", "wrong:3: expected one document", ""},
		{"title: x\ntitle: y\n", "wrong:2:1: this key is given twice", ""},
		{"hosts: api.example.com\n", "wrong:1:8: expected a list, such as [one, two]", ""},
		{"hosts: [https://a/]\n",
			"wrong:1:9: expected the name of a host, such as api.example.com", ""},
		{"program: /bin/sh\n", "wrong:1:10: the path has to be one below the home", ""},
		{"program: bin/sh\n", "wrong:1:10: expected a plain name", ""},
		{"state: a/../../b\n", "wrong:1:8: the path has to be plain, such as .name/file",
			""},
		{"environment: {\"A=B\": c}\n", "wrong:1:15: expected the name of a variable", ""},
		{"every_key: maybe\n", "wrong:1:12: expected true or false", ""},
		{"keys: [{env: A}]\n", "wrong:1:8: a key needs env, hosts and headers", ""},
		{"keys: [{env: A, hosts: [a.b], headers: [c], login: {file: d}}]\n",
			"wrong:1:8: a login needs file and token", ""},
		{"keys: [{env: A, hosts: [a.b], headers: [c], login: {file: d, token: [e], renew: "
		 "{url: \"https://f.g/h\", client_id: i}}}]\n",
			"wrong:1:8: a login is renewed with a client id, and has members for both "
			"tokens",
			""},
		{"keys: [{env: A, hosts: [a.b], headers: [c], login: {file: d, token: [e], "
		 "refresh: "
		 "[f], renew: {url: \"http://g.h/i\", client_id: j}}}]\n",
			"wrong:1:8: a login is renewed at https://HOST[:PORT]/PATH", ""},
		{"headless: {output: pdf}\n",
			"wrong:1:20: cloche reads the output of claude-code alone, not \"pdf\"",
			""},
		{"- x\n", "wrong:1:1: expected a mapping (name: value)", ""},
		{"a: [\n", "wrong:2: did not find expected node content", ""},
		{"", "wrong: the driver is empty", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct agent_driver *d = calloc(1, sizeof(*d));
		_cleanup_(freep) char *base = NULL;
		struct cloche_err err = CLOCHE_ERR_INIT;

		must(d != NULL);
		check_int(agent_driver_read(str_from(rows[i].text), "wrong", d, &base, &err),
			-E_CONFIG);
		check_z(err.message, rows[i].message);
		check_z(err.hint, rows[i].hint);
		agent_driver_free(d);
	}
}

static void test_base_without_end(void)
{
	_cleanup_(freep) char *config = fs_join(dir, "config");
	struct agent_driver *d = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(setenv("XDG_CONFIG_HOME", config, 1) == 0);
	write_own("one", "base: two\ntitle: One\nprogram: one\n");
	write_own("two", "base: one\n");
	check_int(agent_driver_get("one", &d, &err), -E_CONFIG);
	check(strstr(err.message, "build on each other without end"));
	write_own("two", "title: Two\n");
	write_own("one", "base: two\n");
	check_int(agent_driver_get("one", &d, &err), -E_CONFIG);
	check_z(err.message, "the driver one has no \"program\"");
	must(unsetenv("XDG_CONFIG_HOME") == 0);
}

int main(void)
{
	_cleanup_(freep) char *home = NULL;

	tap_dir(dir);
	home = fs_join(dir, "empty-home"); /* nobody's own drivers */
	must(unsetenv("XDG_CONFIG_HOME") == 0 && setenv("HOME", home, 1) == 0);
	run_test(test_registry);
	run_test(test_argv);
	run_test(test_argv_takes_no_options_for_values);
	run_test(test_argv_needs_options);
	run_test(test_environment);
	run_test(test_credentials);
	run_test(test_find_order);
	run_test(test_find_package_without_its_install_script);
	run_test(test_find_nothing_outside);
	run_test(test_find_script_alone);
	run_test(test_not_found);
	run_test(test_own_drivers);
	run_test(test_wrong_drivers);
	run_test(test_base_without_end);
	while (known_n > 0)
		agent_driver_free(known[--known_n]);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
