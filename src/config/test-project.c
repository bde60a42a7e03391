/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a project ask for, and that nothing of it is obeyed without consent
 * (INV-CONSENT). tests/integration/test-consent has the files and the person. */
#include "config/config.h"
#include "config/consent.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"
#include <cloche/project.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static cloche_err err;

static void project_freep(cloche_project **p)
{
	cloche_project_free(*p);
}

static void put_file(const char *name, const char *text)
{
	_cleanup_(freep) char *folder = fs_join(dir, ".cloche"), *path = NULL;

	must(folder && fs_mkdirs(folder, 0700, &err) == 0);
	path = fs_join(folder, name);
	must(path && fs_write_atomic(AT_FDCWD, path, str_from(text), 0600, false, &err) == 0);
}

static void test_nothing_is_obeyed_before_consent(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *allow = cloche_allowlist_new();
	_cleanup_(project_freep) cloche_project *p = NULL, *again = NULL;

	setenv("PERSONS", "value", 1);
	put_file("sandbox.yaml", "resource_limits: {memory: 1g}\npass_env: [PERSONS]\n");
	put_file("network-allowlist.yaml", "domains: [a.test]\n");
	must(cloche_project_open(dir, &p, &err) == 0 && p);
	check(!p->is_trusted);
	check_int(cloche_project_apply(p, sb, allow, &err), -CLOCHE_E_DENIED);
	check(!strv_env_get(sb->env, "PERSONS") && sb->limits.memory_bytes == 0);
	check_int(cloche_allowlist_count(allow), 0);
	check(strstr(err.hint, "cloche trust "));
	/* What was read counts, not what is there by now. */
	put_file("sandbox.yaml", "env: {PERSONS: planted}\npass_env: [HOME]\n");
	check(!p->since);
	check_int(cloche_project_trust(p, &err), 0);
	check(p->since);
	check_int(cloche_project_apply(p, sb, allow, &err), 0);
	check_z(strv_env_get(sb->env, "PERSONS"), "value");
	check_int(cloche_allowlist_count(allow), 1);
	must(cloche_project_open(dir, &again, &err) == 0 && again);
	check(!again->is_trusted && again->since);
	check_z(again->changes[0], "+ read your variable HOME");
	check_z(again->changes[1], "- read your variable PERSONS");
	check(!again->changes[2]);
	check_int(cloche_project_revoke(dir, &err), 0);
	check_int(cloche_project_revoke(dir, &err), -CLOCHE_E_NOT_FOUND);
}

/* Nobody consents to what would then be refused. */
static void test_a_key_that_is_unknown(void)
{
	static const char *const files[] = {"foo: 1\npass_env: [X]\n",
		"pass_env: [X]\nresource_limits: {memroy: 1g}\n", "pass_env: [X]\npass_env: [Y]\n"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(project_freep) cloche_project *p = NULL;

		put_file("sandbox.yaml", files[i]);
		check_int(cloche_project_open(dir, &p, &err), -CLOCHE_E_CONFIG);
		check(strstr(err.message, i < 2 ? "unknown key" : "given twice"));
	}
}

static int read_nothing(struct config *c, yaml_node_t *value, void *into)
{
	return 0;
}

/* What widens is asked for in words, one line each; what narrows is not. */
static void test_options_ask(void)
{
	static const char *const words[] = {
		"see of this machine, and change unless it ends in :ro: "
		"\"/usr/share:/data:ro\"",
		"see your program and what it needs: node",
		"open a port of this machine ([ADDR:]HOST:GUEST): \"80:8080\"",
		"open a port of this machine ([ADDR:]HOST:GUEST): \"81:81\"",
		"be this user inside: root",
		"make namespaces and mounts inside, which isolates less",
		"be made by the provider: subprocess",
		"have the root filesystem of the image: \"debian:12\"",
		"use a masked secret: TOKEN@a.test",
		"run longer than an agent does by default (5m): 1h",
		"go on if a limit cannot be enforced: best-effort",
		"reach host a.test; any path; any method; https",
		"reach host b.test; everything below /x; any method; https"};
	_cleanup_(project_freep) cloche_project *p = NULL, *narrow = NULL;
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *allow = cloche_allowlist_new();
	size_t n = 0;

	put_file("network-allowlist.yaml", "");
	put_file("sandbox.yaml",
		"mounts: [\"/usr/share:/data:ro\"]\ntools: [node]\nports: [\"80:8080\", "
		"\"81:81\"]\n"
		"user: root\nnested: on\nprovider: subprocess\nimage: \"debian:12\"\n"
		"secrets: TOKEN@a.test\ntimeout: 1h\nlimits: best-effort\n"
		"allow: [a.test, \"https://b.test/x/\"]\n");
	must(cloche_project_open(dir, &p, &err) == 0 && p);
	check(!p->is_trusted);
	for (; p->asks[n]; n++)
		if (n >= ARRAY_SIZE(words) || strncmp(p->asks[n], words[n], strlen(words[n])) != 0)
			tap_fail("asked: %s", p->asks[n]);
	check_int(n, ARRAY_SIZE(words));
	check_int(cloche_project_rules(p, allow, &err), 0);
	check_int(cloche_allowlist_count(allow), 2);
	put_file("sandbox.yaml", "workdir: /x\nnested: false\ntimeout: 1m\noutput_limit: 1m\n"
				 "limits: {memory: 1g, pids: 9}\nmounts: []\nallow: []\n");
	must(cloche_project_open(dir, &narrow, &err) == 0 && narrow);
	check(narrow->is_trusted && !narrow->asks[0]);
}

/* A rule that would be refused is refused before anybody is asked. */
static void test_a_bad_rule_is_not_asked_for(void)
{
	_cleanup_(project_freep) cloche_project *p = NULL;

	put_file("sandbox.yaml", "pass_env: [X]\nallow:\n- a b\n");
	check_int(cloche_project_open(dir, &p, &err), -CLOCHE_E_CONFIG);
	check(strstr(err.message, ".cloche/sandbox.yaml:3:3: "));
}

static int obey(cloche_sandbox *sb, const char *yaml)
{
	_cleanup_(project_freep) cloche_project *p = NULL;
	int r;

	put_file("sandbox.yaml", yaml);
	must(cloche_project_open(dir, &p, &err) == 0 && p);
	r = cloche_project_trust(p, &err);
	return r < 0 ? r : cloche_project_apply(p, sb, NULL, &err);
}

/* Neither with consent nor without. */
static void test_a_project_lifts_no_limit(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();

	must(cloche_sandbox_set(sb, "memory", "1g", &err) == 0);
	must(cloche_sandbox_set(sb, "timeout", "10m", &err) == 0);
	check_int(obey(sb, "limits: {memory: 2g, pids: 7, file_size: 1m}\ntimeout: 2h\n"), 0);
	check(sb->limits.memory_bytes == 1U << 30 && sb->limits.pids == 7 &&
		sb->limits.file_bytes == 1 << 20);
	check_int(sb->timeout_ms, 600000);
	check_int(obey(sb, "limits: {memory: 512m}\ntimeout: 5m\n"), 0);
	check(sb->limits.memory_bytes == 512U << 20);
	check_int(sb->timeout_ms, 300000);
}

/* INV-NAMED-ONCE: consent is for a name, and a room could put a link there. */
static void test_a_mount_in_the_project(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(freep) char *data = fs_join(dir, "data"), *link = fs_join(dir, "link"),
			      *yaml = NULL, *target = NULL;

	must(data && link && mkdir(data, 0700) == 0 && symlink("/usr/share", link) == 0);
	check_int(obey(sb, "mounts: [\"./data:/in:ro\", data]\n"), 0);
	must(sb->mounts_n == 2);
	check(sb->mounts[0].ro && !sb->mounts[1].ro);
	target = realpath(data, NULL);
	check_z(sb->mounts[1].target, target);
	check_int(obey(sb, "mounts: [link:/in]\n"), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "sandbox.yaml:1:10: mount link: it cannot be opened"));
	must(asprintf(&yaml, "mounts: [\"%.*s/link/doc:/in\"]\n", (int)(strlen(target) - 5),
		     target) > 0);
	check_int(obey(sb, yaml), -CLOCHE_E_CONFIG);
	check_int(obey(sb, "mounts: [../other:/in]\n"), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "it leads out of the project"));
	check_int(obey(sb, "mounts: [no-such:/in]\n"), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "mount no-such: it is not there"));
	check_int(obey(sb, "tools: [bin/tool]\n"), -CLOCHE_E_CONFIG);
	check_int(obey(sb, "root: somewhere\n"), -CLOCHE_E_CONFIG);
	check_int(obey(sb, "env_file: .env\n"), -CLOCHE_E_CONFIG);
	check_int(obey(sb, "network_log: log\n"), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "name it from / or ~/"));
	check_int(sb->mounts_n, 2);
}

/* Up to the top of the repository, and no further. */
static void test_files_above(void)
{
	_cleanup_(freep) char *top = fs_join(dir, "top"),
			      *objects = fs_join(dir, "top/.git/objects"),
			      *refs = fs_join(dir, "top/.git/refs"),
			      *head = fs_join(dir, "top/.git/HEAD"),
			      *below = fs_join(dir, "top/a/b"),
			      *own = fs_join(dir, "top/a/.cloche"),
			      *file = fs_join(dir, "top/a/.cloche/sandbox.yaml");
	_cleanup_(project_freep) cloche_project *p = NULL, *q = NULL;

	put_file("sandbox.yaml", "");
	must(file && own && fs_mkdirs(below, 0700, &err) == 0);
	must(cloche_project_find(below, &p, &err) == 0);
	check(!p);
	must(objects && refs && head && fs_mkdirs(objects, 0700, &err) == 0 &&
		fs_mkdirs(refs, 0700, &err) == 0 && fs_mkdirs(own, 0700, &err) == 0);
	must(fs_write_atomic(AT_FDCWD, head, STR("ref: refs/heads/main\n"), 0600, false, &err) ==
		0);
	must(cloche_project_find(below, &p, &err) == 0);
	check(!p);
	must(fs_write_atomic(AT_FDCWD, file, STR(""), 0600, false, &err) == 0);
	must(cloche_project_find(below, &p, &err) == 0 && p);
	check(str_ends(str_from(p->dir), STR("/top/a")));
	must(cloche_project_open(below, &q, &err) == 0);
	check(!q);
	must(cloche_project_find(dir, &q, &err) == 0 && q);
	check_int(cloche_project_find("/no/such/place", &q, &err), -CLOCHE_E_SYSTEM);
}

/* A key to which nobody gave a thought. */
static void test_a_new_key_asks(void)
{
	static const struct config_key keys[] = {{"new_key", read_nothing, NULL}};
	static const char text[] = "{new_key: {a: [b, !env C], d: 'e f'}}";
	struct asks asks = {0};
	struct config c = {.file = "f", .err = &err, .asks = &asks};
	yaml_parser_t parser;

	must(yaml_parser_initialize(&parser));
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
	must(yaml_parser_load(&parser, &c.doc));
	check_int(config_ask_walk(&c, yaml_document_get_root_node(&c.doc), keys, 1), 0);
	must(asks.n == 2);
	check_z(asks.lines[0], "new_key a: b, your variable C");
	check_z(asks.lines[1], "new_key d: \"e f\"");
	asks_done(&asks);
	yaml_document_delete(&c.doc);
	yaml_parser_delete(&parser);
}

static void test_words_cannot_pass_for_others(void)
{
	static const struct {
		struct str word;
		const char *shown;
	} cases[] = {{STR("a.b-c_d/*"), "a.b-c_d/*"}, {STR(""), "\"\""},
		{STR("a, b; c"), "\"a, b; c\""}, {STR("a\"b\\"), "\"a\\\"b\\\\\""},
		{STR("\x1b[2J\n\xe2\x80\xae\x7f\0x"),
			"\"\\x1b[2J\\x0a\\xe2\\x80\\xae\\x7f\\x00x\""}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;

		ask_line_word(&line, cases[i].word);
		must(line.error == 0);
		check_str(buf_str(&line.text), cases[i].shown);
	}
}

/* Each allocation fails once: what is then not known is neither trusted nor obeyed. */
static void consent_and_obey(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(project_freep) cloche_project *p = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = cloche_project_open(dir, &p, &why);

	check(r == 0 || torture_failed);
	check((r == 0) == (p != NULL));
	if (p && sb) {
		check(!p->is_trusted && p->asks[3]);
		check(cloche_project_apply(p, sb, NULL, &why) < 0);
		r = cloche_project_trust(p, &why);
		check(r == 0 || torture_failed);
		check(p->is_trusted == (r == 0));
	}
	/* One of the two has its memory. */
	(void)cloche_project_revoke(dir, NULL);
	(void)cloche_project_revoke(dir, NULL);
}

static void test_without_memory(void)
{
	put_file("sandbox.yaml",
		"pass_env: [A]\nenv: {B: !env C}\n"
		"masked_secrets: {T: {value: !env D, scopes: [a.test], headers: [h]}}\n");
	put_file("network-allowlist.yaml", "url_prefixes: [{host: a.test, methods: [GET]}]\n");
	torture(consent_and_obey);
}

static void count_setting(const cloche_setting *s, void *user)
{
	++*(int *)user;
	check(s->key && s->value);
}

/* The same for options: either all of them are set and told, or it is an error. */
static void find_and_apply(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(project_freep) cloche_project *p = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	int told = 0, r = cloche_project_find(dir, &p, &why);

	check((r == 0 && p && p->is_trusted) || torture_failed);
	if (!p || !sb || !p->is_trusted)
		return;
	cloche_sandbox_on_setting(sb, count_setting, &told);
	r = cloche_project_apply(p, sb, NULL, &why);
	check(r == 0 || (torture_failed && why.code && why.message[0]));
	if (r == 0)
		check(told == 4 && sb->mounts_n == 1 && sb->upstream_dns &&
			cloche_allowlist_count(sb->allowlist) == 1 && sb->limits.pids == 9);
}

static void test_options_without_memory(void)
{
	_cleanup_(freep) char *folder = fs_join(dir, ".cloche"), *path = NULL;
	_cleanup_(project_freep) cloche_project *p = NULL;

	path = folder ? fs_join(folder, "network-allowlist.yaml") : NULL;
	must(path && unlink(path) == 0);
	put_file("sandbox.yaml", "allow: [a.test]\nmounts: [data:/in]\nlimits: {pids: 9}\n"
				 "upstream_dns: [127.0.0.1]\n");
	must(cloche_project_open(dir, &p, &err) == 0 && p && cloche_project_trust(p, &err) == 0);
	torture(find_and_apply);
	must(cloche_project_revoke(dir, &err) == 0);
}

static void count_consent(const cloche_consent *c, void *user)
{
	++*(int *)user;
	check_z(c->dir, "/a/project");
	check_z(c->hash, "hash");
}

static void test_records(void)
{
	char *asks[] = {(char[]){"one"}, NULL};
	_cleanup_json_ json_t *record = NULL, *other = NULL;
	int n = 0;

	check_int(cloche_project_list(count_consent, &n, &err), 0);
	check_int(n, 0);
	check_int(consent_load("/a/project", &record, &err), 0);
	check_int(consent_save("/a/project", "old", asks, &err), 0);
	check_int(consent_save("/a/project", "hash", asks, &err), 0);
	check_int(consent_load("/a/project", &record, &err), 1);
	check_str(json_str_at(record, "sha256"), "hash");
	check_int(consent_load("/a/project/", &other, &err), 0);
	check_int(cloche_project_list(count_consent, &n, &err), 0);
	check_int(n, 1);
	check_int(consent_remove("/a/project", &err), 1);
	check_int(consent_remove("/a/project", &err), 0);
}

int main(void)
{
	_cleanup_(freep) char *state = NULL;

	tap_dir(dir);
	state = fs_join(dir, "state");
	must(state && setenv("CLOCHE_STATE_DIR", state, 1) == 0);
	must(setenv("HOME", dir, 1) == 0);
	run_test(test_records);
	run_test(test_nothing_is_obeyed_before_consent);
	run_test(test_a_key_that_is_unknown);
	run_test(test_options_ask);
	run_test(test_a_bad_rule_is_not_asked_for);
	run_test(test_a_project_lifts_no_limit);
	run_test(test_a_mount_in_the_project);
	run_test(test_files_above);
	run_test(test_a_new_key_asks);
	run_test(test_words_cannot_pass_for_others);
	run_test(test_without_memory);
	run_test(test_options_without_memory);
	(void)fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
