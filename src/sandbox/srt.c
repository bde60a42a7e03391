/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the table has the translation of each key. Domains and paths are collected
 * first, because one list may exclude entries of another, and are settled at the end. */
#include "sandbox/srt.h"
#include "base/fd.h"
#include "base/json.h"
#include "fs/fs.h"
#include "job/job.h"
#include "sandbox/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SRT_ALLOWED "network.allowedDomains"

enum { SETTINGS_MAX = 1 << 20 };

enum shape { LIST, OBJECTS, VALUE };

struct srt_row {
	const char *group, *name, *key;
	enum shape shape;
	/* Called for each entry of a list, or for the value. NULL: the key is only reported. */
	int (*take)(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err);
	const char *here;
	bool weaker;
	enum srt_rule rule; /* of paths */
};

typedef void (*srt_fn)(const cloche_srt_rule *rule, void *user);
JOB_TELL1(srt_call, srt_fn, const cloche_srt_rule *)

void srt_tell(const struct srt *s, const char *key, const char *value, const char *here)
{
	if (s->fn)
		srt_call(s->fn, &(cloche_srt_rule){.key = key, .value = value, .here = here},
			s->user);
}

void srt_tell_weaker(const struct srt *s, const char *key, const char *value, const char *here)
{
	const cloche_srt_rule rule = {.key = key, .value = value, .here = here, .weaker = true};

	if (s->fn)
		srt_call(s->fn, &rule, s->user);
}

/* --- network --- */

/* Return the domain without ":PORT". */
static struct str host_of(const char *domain)
{
	return str_prefix(str_from(domain), str_chr(str_from(domain), ':'));
}

/* Return whether `outer` includes all hosts of `inner`; both are hosts, or "*.example.com". */
static bool names_all(struct str outer, struct str inner)
{
	struct str below = str_from_index(outer, 1);

	if (str_ieq(outer, STR("*")) || str_ieq(outer, inner))
		return true;
	return str_starts(outer, STR("*.")) && inner.n > below.n &&
	       str_ieq(str_from_index(inner, inner.n - below.n), below);
}

enum part { NONE_OF_IT, SOME_OF_IT, ALL_OF_IT };

/* An allowed host without a port means the usual ports, a denied one means every port. */
static enum part ports_denied(const char *allowed, const char *denied)
{
	const char *of_allowed = strchr(allowed, ':'), *of_denied = strchr(denied, ':');

	if (!of_denied || (of_allowed && strcmp(of_allowed, of_denied) == 0))
		return ALL_OF_IT;
	return !of_allowed && (strcmp(of_denied, ":80") == 0 || strcmp(of_denied, ":443") == 0)
		       ? SOME_OF_IT
		       : NONE_OF_IT;
}

static enum part hosts_denied(const char *allowed, const char *denied)
{
	if (names_all(host_of(denied), host_of(allowed)))
		return ALL_OF_IT;
	return names_all(host_of(allowed), host_of(denied)) ? SOME_OF_IT : NONE_OF_IT;
}

/* A denied domain may exclude the whole of an allowed one; excluding a part is not possible. */
static int is_taken_back(
	const struct srt *s, const char *allowed, bool *ret, struct cloche_err *err)
{
	*ret = false;
	for (size_t i = 0; s->denied && s->denied[i]; i++) {
		enum part part = MIN(
			ports_denied(allowed, s->denied[i]), hosts_denied(allowed, s->denied[i]));

		if (part == SOME_OF_IT) {
			err_set(err, E_CONFIG,
				"network.deniedDomains \"%s\" is a part of allowedDomains \"%s\"",
				s->denied[i], allowed);
			err_hint(err, "an allowlist of cloche has no exceptions: list the hosts "
				      "that are allowed");
			return -E_CONFIG;
		}
		*ret |= part == ALL_OF_IT;
	}
	return 0;
}

/* As in srt: a name with a dot, or "*." before one; no scheme, no path. */
static bool is_domain(const char *domain)
{
	struct str host = host_of(domain);

	if (str_starts(host, STR("*.")))
		host = str_from_index(host, 2);
	return str_chr(host, '.') < host.n && str_chr(host, '*') == host.n && !strchr(domain, '/');
}

static int settle_network(struct srt *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && s->allowed && s->allowed[i]; i++) {
		const char *domain = s->allowed[i];
		bool taken_back;

		if (str_ieq(host_of(domain), STR("localhost"))) {
			srt_tell(s, SRT_ALLOWED, domain, "the sandbox's own, always");
			continue;
		}
		if (!is_domain(domain))
			return err_set(
				err, E_CONFIG, SRT_ALLOWED ": \"%s\" is not a domain", domain);
		r = is_taken_back(s, domain, &taken_back, err);
		if (r == 0 && !taken_back)
			r = option_allow(s->sb, domain, err);
		if (r == 0)
			srt_tell(s, SRT_ALLOWED, domain,
				taken_back ? "refused: deniedDomains wins"
					   : "allowed as --allow does: ports 80 and 443 if "
					     "none is named");
	}
	for (size_t i = 0; r == 0 && s->denied && s->denied[i]; i++)
		srt_tell(s, "network.deniedDomains", s->denied[i],
			"refused, like everything that is not allowed");
	return r;
}

static int take_allowed(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	return strv_add(&s->allowed, json_str(v)) < 0 ? err_nomem(err) : 0;
}

static int take_denied(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	return strv_add(&s->denied, json_str(v)) < 0 ? err_nomem(err) : 0;
}

/* --- files --- */

static int take_path(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	return srt_files_add(s, row->rule, json_string_value(v), err);
}

static int take_git_config(
	struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;

	if (!json_is_true(v))
		return 0;
	path = fs_join(s->cwd, ".git/config");
	if (!path)
		return err_nomem(err);
	if (access(path, F_OK) < 0)
		return 0;
	srt_tell(s, row->key, "true", "as --allow-write .git/config");
	return sandbox_allow_write(s->sb, path, err);
}

/* --- credentials --- */

static int bad_entry(const char *key, const char *name, struct cloche_err *err)
{
	return err_set(err, E_CONFIG,
		"%s: \"%s\" is not an entry with a mode of \"deny\" or \"mask\"", key,
		name ? name : "");
}

/* A masked file is hidden; srt itself does so if it cannot do better. */
static int take_file(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	const char *path = json_string_value(json_object_get(v, "path"));
	struct str mode = json_str_at(v, "mode");

	if (!path || !(str_eq(mode, STR("deny")) || str_eq(mode, STR("mask"))))
		return bad_entry(row->key, path, err);
	srt_tell(s, row->key, path, "not readable; --secret-file uses a value without showing it");
	return srt_files_add(s, SRT_DENY_READ, path, err);
}

static int mask(
	struct srt *s, const char *key, const char *name, json_t *hosts, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf spec = BUF_INIT(65536);
	int r = buf_printf(&spec, "%s@", name), n = 0;
	json_t *host;
	size_t i;

	json_array_foreach (hosts, i, host) {
		struct str h = host_of(json_is_string(host) ? json_string_value(host) : "");

		if (h.n == 0 || str_ieq(h, STR("localhost")))
			continue;
		if (r >= 0)
			r = buf_printf(&spec, "%s%.*s", n++ ? "," : "", STR_FMT(h));
	}
	if (r < 0)
		return err_nomem(err);
	if (n == 0) {
		srt_tell(s, key, name, "not inside: there is no host to send it to");
		return 0;
	}
	srt_tell(s, key, name, "masked, as --secret does");
	if (buf_add(&spec, "", 1) < 0)
		return err_nomem(err);
	return option_secret(s->sb, (const char *)buf_data(&spec), err);
}

static int take_variable(
	struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	static const char *const parts[] = {"extract", "decode", "maskClaims"};
	const char *name = json_string_value(json_object_get(v, "name"));
	struct str mode = json_str_at(v, "mode");
	_cleanup_json_ json_t *all = json_array();
	json_t *hosts = json_object_get(v, "injectHosts");

	if (!all)
		return err_nomem(err);
	if (!name || !(str_eq(mode, STR("deny")) || str_eq(mode, STR("mask"))) ||
		(hosts && !json_is_array(hosts)))
		return bad_entry(row->key, name, err);
	if (str_eq(mode, STR("deny"))) {
		srt_tell(s, row->key, name, "not inside: no variable is, unless --env names it");
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (json_object_get(v, parts[i]))
			return err_set(err, E_CONFIG, "%s: \"%s\" cannot be masked by \"%s\" here",
				row->key, name, parts[i]);
	if (!secure_getenv(name)) {
		srt_tell(s, row->key, name, "not set here: left out");
		return 0;
	}
	for (size_t i = 0; !hosts && s->allowed && s->allowed[i]; i++)
		if (json_array_append_new(all, json_string(s->allowed[i])) < 0)
			return err_nomem(err);
	return mask(s, row->key, name, hosts ? hosts : all, err);
}

/* --- the file --- */

static int refuse_true(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	if (!json_is_true(v))
		return 0;
	err_set(err, E_CONFIG, "%s: hosts and paths have to be listed here", row->key);
	err_hint(err, "leave the key out, and list what is needed");
	return -E_CONFIG;
}

/* In the order in which they are read: masked variables may go to the domains that are allowed. */
static const struct srt_row rows[] = {
#define ROW(group, name) #group, #name, #group "." #name
	{ROW(network, allowedDomains), LIST, take_allowed},
	{ROW(network, deniedDomains), LIST, take_denied},
	{ROW(network, deniedDomainReasons), VALUE, NULL, "not shown: the gateway has its own"},
	{ROW(network, strictAllowlist), VALUE, NULL, "always so"},
	{ROW(network, allowAllDomains), VALUE, refuse_true},
	{ROW(network, allowUnixSockets), VALUE, NULL, "a socket is shown with --mount"},
	{ROW(network, allowAllUnixSockets), VALUE, NULL,
		"only sockets that are shown exist inside"},
	{ROW(network, allowLocalBinding), VALUE, NULL, "always: the loopback is the sandbox's own"},
	{ROW(network, httpProxyPort), VALUE, NULL, "cloche's gateway is used instead", true},
	{ROW(network, socksProxyPort), VALUE, NULL, "cloche's gateway is used instead", true},
	{ROW(network, mitmProxy), VALUE, NULL, "cloche's gateway is used instead", true},
	{ROW(network, parentProxy), VALUE, NULL, "hosts are reached directly", true},
	{ROW(network, tlsTerminate), VALUE, NULL, "always: the gateway judges requests"},
	{ROW(filesystem, disabled), VALUE, refuse_true},
	{ROW(filesystem, allowRead), LIST, take_path, .rule = SRT_ALLOW_READ},
	{ROW(filesystem, allowWrite), LIST, take_path, .rule = SRT_ALLOW_WRITE},
	{ROW(filesystem, denyWrite), LIST, take_path, .rule = SRT_DENY_WRITE},
	{ROW(filesystem, denyRead), LIST, take_path, .rule = SRT_DENY_READ},
	{ROW(filesystem, allowGitConfig), VALUE, take_git_config},
	{ROW(credentials, files), OBJECTS, take_file},
	{ROW(credentials, envVars), OBJECTS, take_variable},
	{ROW(credentials, allowPlaintextInject), VALUE, NULL, "never: secrets go over TLS alone"},
	{ROW(credentials, awsPairs), VALUE, NULL, "left out: see --aws-secret", true},
	{ROW(credentials, sigv4), VALUE, NULL, "left out: see --aws-secret", true},
#undef ROW
};

/* Top-level keys that say how srt works, not what is granted. */
static const char *const unneeded[] = {"ignoreViolations", "enableWeakerNestedSandbox",
	"enableWeakerNetworkIsolation", "mandatoryDenySearchDepth", "ripgrep", "seccomp",
	"bwrapPath", "socatPath", "allowPty", "allowAppleEvents", "windows", "$schema"};

static int take_row(struct srt *s, const struct srt_row *row, json_t *v, struct cloche_err *err)
{
	json_t *entry;
	size_t i;
	int r = 0;

	if (!row->take) {
		(row->weaker ? srt_tell_weaker : srt_tell)(s, row->key, "", row->here);
		return 0;
	}
	if (row->shape == VALUE)
		return row->take(s, row, v, err);
	if (!json_is_array(v))
		return err_set(err, E_CONFIG, "%s is not a list", row->key);
	json_array_foreach (v, i, entry) {
		if (row->shape == LIST
				? !json_is_string(entry) || strlen(json_string_value(entry)) !=
								    json_string_length(entry)
				: !json_is_object(entry))
			r = err_set(err, E_CONFIG, "%s: entry %zu is not %s", row->key, i + 1,
				row->shape == LIST ? "a string" : "an object");
		else
			r = row->take(s, row, entry, err);
		if (r < 0)
			break;
	}
	return r;
}

static bool is_known(const char *group, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].group, group) == 0 && (!name || !strcmp(rows[i].name, name)))
			return true;
	return false;
}

/* Report keys that this version does not know: newer ones, and mistakes. */
static void tell_unknown(const struct srt *s, json_t *settings)
{
	const char *group, *name;
	json_t *members, *value;
	char key[256];

	json_object_foreach (settings, group, members) {
		bool plain = false;

		for (size_t i = 0; i < ARRAY_SIZE(unneeded); i++)
			plain |= strcmp(group, unneeded[i]) == 0;
		if (plain)
			srt_tell(s, group, "", "not needed here");
		else if (!is_known(group, NULL))
			srt_tell_weaker(s, group, "", "not known: it has no effect");
		else
			json_object_foreach (members, name, value) {
				snprintf(key, sizeof(key), "%s.%s", group, name);
				if (!is_known(group, name))
					srt_tell_weaker(s, key, "", "not known: it has no effect");
			}
	}
}

static int translate(struct srt *s, json_t *settings, struct cloche_err *err)
{
	int r = 0;

	if (!json_is_object(settings))
		return err_set(err, E_CONFIG, "the settings are not a JSON object");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
		json_t *group = json_object_get(settings, rows[i].group), *v;

		if (group && !json_is_object(group))
			return err_set(err, E_CONFIG, "%s is not an object", rows[i].group);
		v = json_object_get(group, rows[i].name);
		if (v && !json_is_null(v))
			r = take_row(s, &rows[i], v, err);
	}
	if (r == 0)
		r = settle_network(s, err);
	if (r == 0)
		r = srt_files_settle(s, err);
	if (r == 0)
		tell_unknown(s, settings);
	return r;
}

static int read_settings(const char *file, json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SETTINGS_MAX);
	json_error_t why;
	int r = fd_read_file(AT_FDCWD, file, &text, err);

	if (r < 0)
		return r;
	r = json_text_read(buf_str(&text), JSON_REJECT_DUPLICATES, ret, &why);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? err_set(err, E_CONFIG, "line %d: %s", why.line, why.text) : 0;
}

static int load(struct srt *s, const char *file, struct cloche_err *err)
{
	_cleanup_json_ json_t *settings = NULL;
	int r;

	s->cwd = getcwd(NULL, 0);
	s->home = fs_home();
	if (!s->cwd)
		return err_sys(err, errno, "find the working directory");
	r = read_settings(file, &settings, err);
	if (r == 0)
		r = translate(s, settings, err);
	if (r < 0)
		err_wrap(err, r, "srt settings %s", file);
	srt_files_done(s);
	strv_free(s->allowed);
	strv_free(s->denied);
	free(s->cwd);
	free(s->home);
	return r;
}

int cloche_sandbox_load_srt_settings(
	cloche_sandbox *sb, const char *json_file, struct cloche_err *err)
{
	struct srt s = {.sb = sb};
	int r = sb->srt_settings
			? err_set(err, E_USAGE, "srt settings: use one file, not both %s and %s",
				  json_file, sb->srt_settings)
			: load(&s, json_file, err);

	return r < 0 ? r : set_string(&sb->srt_settings, json_file, err);
}

int cloche_srt_explain(const char *json_file, void (*fn)(const cloche_srt_rule *rule, void *user),
	void *user, struct cloche_err *err)
{
	struct srt s = {.sb = cloche_sandbox_new(), .fn = fn, .user = user};
	_cleanup_(freep) char *home = fs_home(), *usual = NULL;
	int r;

	if (!json_file && home)
		json_file = usual = fs_join(home, ".srt-settings.json");
	if (!s.sb)
		return err_nomem(err);
	r = json_file ? load(&s, json_file, err)
		      : err_set(err, E_CONFIG, "there is no home with an .srt-settings.json");
	cloche_sandbox_free(s.sb);
	return r;
}
