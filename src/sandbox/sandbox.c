/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: setters check what can be checked without making anything (names, paths,
 * numbers) and copy it. Conditions that depend on the machine are checked when a room is made. */
#include "sandbox/sandbox.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/utf8.h"
#include "fs/fs.h"
#include "ipc/control.h"
#include "ipc/netconf.h"
#include "ipc/rundir.h"
#include "provider/names.h"
#include "secrets/signing.h"
#include "secrets/surrogate.h"
#include "workspace/hide.h"
#include <cloche/diff.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_PEM = 4 << 20, MAX_LABEL_KEY = 63, MAX_CONNECT_TO = 4096 };

/* Variables that an image overrides, unless the user sets them. The room knows its users and adds
 * HOME, USER and LOGNAME (init/user.c). */
static const struct {
	const char *name, *value;
} default_env[] = {{"PATH", SYSTEM_PATH}, {"SHELL", "/bin/sh"}, {"LANG", "C.UTF-8"}};

cloche_sandbox *cloche_sandbox_new(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return NULL;
	sb->network_log_fd = sb->root_fd = -1;
	sb->group = sandbox_group_new();
	sb->provider = strdup("auto");
	if (!sb->group || !sb->provider)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(default_env); i++)
		if (strv_env_set(&sb->env, default_env[i].name, default_env[i].value) < 0)
			return NULL;
	return TAKE_PTR(sb);
}

bool sandbox_env_is_default(const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(default_env); i++)
		if (strcmp(default_env[i].name, name) == 0)
			return strcmp(default_env[i].value, value) == 0;
	return false;
}

bool sandbox_is_elsewhere(const cloche_sandbox *sb)
{
	return sb->place || (sb->provider && provider_is_elsewhere(sb->provider));
}

/* Whose image it is depends on where the sandbox is made. */
static int sandbox_find_image_again(cloche_sandbox *sb, bool was_elsewhere, cloche_err *err)
{
	_cleanup_(freep) char *root = NULL;

	if (!sb->image || sandbox_is_elsewhere(sb) == was_elsewhere)
		return 0;
	root = strdup(sb->image);
	return root ? sandbox_set_root(sb, root, err) : err_nomem(err);
}

int sandbox_set_provider(cloche_sandbox *sb, const char *name, cloche_err *err)
{
	bool was_elsewhere = sandbox_is_elsewhere(sb);
	const char *found;
	int r = provider_name_find(name, &found, err);

	if (r == 0)
		r = set_string(&sb->provider, found, err);
	return r < 0 ? r : sandbox_find_image_again(sb, was_elsewhere, err);
}

int sandbox_set_place(cloche_sandbox *sb, const char *place, cloche_err *err)
{
	bool was_elsewhere = sandbox_is_elsewhere(sb);

	if (place && !room_place_is_name(str_from(place)))
		return err_set(err, E_USAGE,
			"--place: use up to %d bytes without control characters", ROOM_PLACE_MAX);
	if (set_string(&sb->place, place, err) < 0)
		return -err->code;
	return sandbox_find_image_again(sb, was_elsewhere, err);
}

int cloche_sandbox_allow_unsandboxed(cloche_sandbox *sb, cloche_err *err)
{
	return strcmp(sb->provider, "auto") == 0
		       ? set_string(&sb->provider, PROVIDER_AUTO_OR_NONE, err)
		       : 0;
}

int cloche_provider_register(const char *name, const char *path, cloche_err *err)
{
	return provider_name_register(name, path, err);
}

static int sandbox_use_place_image(cloche_sandbox *sb, const char *root, cloche_err *err)
{
	int r;

	if (!room_place_is_name(str_from(root + strlen("image:"))))
		return err_set(err, E_USAGE,
			"--root %s: an image at another place has a name of at most %d bytes", root,
			ROOM_PLACE_MAX);
	sb->root = ROOM_ROOT_HOST;
	r = set_string(&sb->root_dir, NULL, err);
	return r < 0 ? r : set_string(&sb->image, root, err);
}

int sandbox_set_root(cloche_sandbox *sb, const char *root, cloche_err *err)
{
	_cleanup_(freep) char *dir = NULL;
	int r, fd;

	sandbox_leave_image(sb);
	sb->root_fd = fd_close(sb->root_fd);
	if (strcmp(root, "host") == 0) {
		sb->root = ROOM_ROOT_HOST;
		return set_string(&sb->root_dir, NULL, err);
	}
	/* The place has its own images. */
	if (sandbox_is_elsewhere(sb) && str_starts(str_from(root), STR("image:")))
		return sandbox_use_place_image(sb, root, err);
	if (str_starts(str_from(root), STR("image:")))
		return sandbox_use_image(sb, root, err);
	r = sandbox_open_judged(root, "root", &fd, &dir, err);
	if (r < 0)
		return r;
	sb->root = ROOM_ROOT_DIR;
	sb->root_fd = fd;
	return set_string(&sb->root_dir, dir, err);
}

int sandbox_allow_write(cloche_sandbox *sb, const char *path, cloche_err *err)
{
	struct str rest = str_from(path);

	if (path[0] == '\0')
		return err_set(err, E_USAGE, "--allow-write: the path is empty");
	while (rest.n)
		if (str_eq(str_next(&rest, '/'), STR("..")))
			return err_set(
				err, E_USAGE, "--allow-write %s: name it without \"..\"", path);
	if (strv_count(sb->opened) >= ROOM_MAX_OPENED)
		return err_set(err, E_LIMIT, "more than %d --allow-write", ROOM_MAX_OPENED);
	return strv_add(&sb->opened, str_from(path)) < 0 ? err_nomem(err) : 0;
}

int sandbox_hide(cloche_sandbox *sb, const char *rule, cloche_err *err)
{
	if (!hide_rule_is_good(str_from(rule)))
		return err_set(err, E_USAGE,
			"--hide \"%s\": use a name or a path in the workspace, with * and ? for "
			"what varies, !GLOB, or none",
			rule);
	if (strv_count(sb->hidden) >= HIDE_MAX_RULES)
		return err_set(err, E_LIMIT, "more than %d --hide", HIDE_MAX_RULES);
	return strv_add(&sb->hidden, str_from(rule)) < 0 ? err_nomem(err) : 0;
}

int sandbox_set_workdir(cloche_sandbox *sb, const char *dir, cloche_err *err)
{
	if (dir[0] != '/')
		return err_set(err, E_USAGE, "working directory \"%s\" is not absolute", dir);
	return set_string(&sb->workdir, dir, err);
}

const char *sandbox_workdir(const cloche_sandbox *sb)
{
	if (sb->workdir)
		return sb->workdir;
	if (sb->workspace)
		return SANDBOX_WORKSPACE;
	return sb->image_workdir ? sb->image_workdir : "/";
}

int cloche_sandbox_set_env(cloche_sandbox *sb, const char *name, const char *value, cloche_err *err)
{
	if (name[0] == '\0' || strchr(name, '='))
		return err_set(err, E_USAGE, "\"%s\" is not the name of a variable", name);
	return strv_env_set(&sb->env, name, value) < 0 ? err_nomem(err) : 0;
}

int sandbox_redact(cloche_sandbox *sb, const char *value, struct cloche_err *err)
{
	size_t n = strlen(value);

	if (n < SURROGATE_MIN || n > NETCONF_MAX_REDACT ||
		sb->redact_bytes + n > NETCONF_MAX_REDACT_ALL)
		return 0;
	sb->redact_bytes += n;
	return strv_add(&sb->redact, str_make(value, n)) < 0 ? err_nomem(err) : 0;
}

int cloche_sandbox_set_allowlist(cloche_sandbox *sb, const cloche_allowlist *list, cloche_err *err)
{
	cloche_allowlist *copy = allowlist_copy(list);

	if (list && !copy)
		return err_nomem(err);
	cloche_allowlist_free(sb->allowlist);
	sb->allowlist = copy;
	return 0;
}

int cloche_sandbox_add_allowlist(cloche_sandbox *sb, const cloche_allowlist *list, cloche_err *err)
{
	int r = 0;

	if (!sb->allowlist)
		return cloche_sandbox_set_allowlist(sb, list, err);
	for (size_t i = 0; r == 0 && i < list->sources_n; i++)
		r = allowlist_add_source(sb->allowlist, &list->sources[i], err);
	return r;
}

/* Credentials with several values are replaced as a whole. */
static bool is_replaced(const cloche_secrets *by, const cloche_secrets *old, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		if (secrets_has(by, secret_set_get(old->set, i)->spec.name))
			return true;
	return false;
}

static int copy_members(cloche_secrets *to, const cloche_secrets *old, size_t from, size_t n,
	struct cloche_err *err)
{
	int r = 0;

	for (size_t i = from; r == 0 && i < from + n; i++)
		r = secrets_copy_member(to, old, secret_set_get(old->set, i), err);
	return r;
}

/* In a sandbox an empty secret is a variable like any other. */
static int set_empty(cloche_sandbox *sb, const cloche_secrets *secrets, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < strv_count(secrets->empty); i++) {
		struct str entry = str_from(secrets->empty[i]);
		_cleanup_(freep) char *name = str_dup(str_prefix(entry, str_chr(entry, '=')));

		r = name ? cloche_sandbox_set_env(sb, name, "", err) : err_nomem(err);
	}
	return r;
}

int cloche_sandbox_add_secrets(cloche_sandbox *sb, const cloche_secrets *secrets, cloche_err *err)
{
	_cleanup_(cloche_secrets_freep) cloche_secrets *merged = secrets_copy(secrets);
	size_t n = sb->secrets ? secret_set_count(sb->secrets->set) : 0, group;

	if (!merged)
		return err_nomem(err);
	for (size_t i = 0; i < n; i += group) {
		int r = 0;

		group = secret_set_group(sb->secrets->set, i);
		if (!is_replaced(merged, sb->secrets, i, group))
			r = copy_members(merged, sb->secrets, i, group, err);
		if (r < 0)
			return r;
	}
	cloche_secrets_free(sb->secrets);
	sb->secrets = TAKE_PTR(merged);
	return set_empty(sb, secrets, err);
}

int sandbox_add_upstream_ca(cloche_sandbox *sb, const char *pem_file, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf pem = BUF_INIT(MAX_PEM);
	char *joined;
	int r = fd_read_file(AT_FDCWD, pem_file, &pem, err);

	if (r < 0)
		return err_wrap(err, r, "upstream CA");
	if (!buf_cstr(&pem))
		return err_nomem(err);
	if (!strstr(buf_data(&pem), "-----BEGIN CERTIFICATE-----"))
		return err_set(err, E_CONFIG, "upstream CA: %s holds no PEM certificate", pem_file);
	if (asprintf(&joined, "%s%s\n", sb->upstream_ca ? sb->upstream_ca : "", buf_data(&pem)) < 0)
		return err_nomem(err);
	free(sb->upstream_ca);
	sb->upstream_ca = joined;
	return 0;
}

/* Take "HOST:" off the front of *s; an IPv6 literal is in brackets. */
static bool take_host(struct str *s, struct host *ret)
{
	size_t n = s->n && s->p[0] == '[' ? str_chr(*s, ']') + 1 : str_chr(*s, ':');
	struct str text = str_prefix(*s, n);

	if (n >= s->n || s->p[n] != ':')
		return false;
	*s = str_from_index(*s, n + 1);
	return host_parse(text, ret) == 0;
}

static bool take_port(struct str *s, uint16_t *ret)
{
	uint64_t port;

	if (parse_u64(str_next(s, ':'), 65535, &port) < 0 || port == 0)
		return false;
	*ret = (uint16_t)port;
	return true;
}

bool sandbox_parse_connect_to(const char *rule, struct sandbox_connect_to *ret)
{
	struct str rest = str_from(rule);

	return take_host(&rest, &ret->host) && take_port(&rest, &ret->port) &&
	       take_host(&rest, &ret->address) && str_chr(rest, ':') == rest.n &&
	       take_port(&rest, &ret->to_port);
}

int sandbox_add_connect_to(cloche_sandbox *sb, const char *rule, cloche_err *err)
{
	struct sandbox_connect_to parsed;

	if (!sandbox_parse_connect_to(rule, &parsed))
		return err_set(err, E_USAGE,
			"--connect-to \"%s\" is not HOST:PORT:ADDRESS:PORT2, as in "
			"api.example.com:443:127.0.0.1:8443",
			rule);
	if (strv_count(sb->connect_to) == MAX_CONNECT_TO)
		return err_set(err, E_USAGE, "more than %d --connect-to", MAX_CONNECT_TO);
	return strv_add(&sb->connect_to, str_from(rule)) < 0 ? err_nomem(err) : 0;
}

int sandbox_set_keep_changes(cloche_sandbox *sb, const char *dir, cloche_err *err)
{
	_cleanup_(freep) char *named = dir ? fs_absolute(dir) : NULL;

	if (dir && !named)
		return err_sys(err, errno, "keep changes in %s", dir);
	return set_string(&sb->keep_changes, named, err);
}

int sandbox_set_network_log(cloche_sandbox *sb, const char *file, cloche_err *err)
{
	return set_string(&sb->network_log, file, err);
}

void cloche_sandbox_set_network_log_fd(cloche_sandbox *sb, int fd)
{
	sb->network_log_fd = fd;
}

void sandbox_set_memory(cloche_sandbox *sb, uint64_t bytes)
{
	sb->limits.memory_bytes = bytes;
	sb->memory_optional = false;
}

void sandbox_set_cpus(cloche_sandbox *sb, uint64_t millicpus)
{
	sb->limits.cpus_milli = millicpus;
	sb->cpus_optional = false;
}

void sandbox_set_limits_best_effort(cloche_sandbox *sb, bool best_effort)
{
	sb->best_effort = best_effort;
	if (!best_effort)
		sb->memory_optional = sb->cpus_optional = false;
}

static bool is_label_key(struct str s)
{
	return s.n > 0 && s.n <= MAX_LABEL_KEY && !strchr("-.", s.p[0]) &&
	       str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "-_.");
}

int sandbox_add_label(cloche_sandbox *sb, const char *label, cloche_err *err)
{
	struct str text = str_from(label), key = str_prefix(text, str_chr(text, '='));
	_cleanup_(freep) char *name = str_dup(key);

	if (!name)
		return err_nomem(err);
	if (key.n == text.n || !is_label_key(key))
		return err_set(err, E_USAGE,
			"label \"%s\": use KEY=VALUE, with letters, digits, '-', '_' and '.' in "
			"KEY",
			label);
	if (!utf8_is_valid(text))
		return err_set(err, E_USAGE, "label %s: its value is not valid UTF-8", name);
	if (text.n > CTL_MAX_LABEL)
		return err_set(err, E_USAGE, "label %s: it may have %d bytes with its value", name,
			CTL_MAX_LABEL);
	if (!strv_env_get(sb->labels, name) && strv_count(sb->labels) >= CTL_MAX_LABELS)
		return err_set(err, E_LIMIT, "more than %d labels", CTL_MAX_LABELS);
	return strv_env_set(&sb->labels, name, label + key.n + 1) < 0 ? err_nomem(err) : 0;
}

/* known ends with NULL. NULL is fine, too. */
static bool is_one_of(const char *word, const char *const *known)
{
	while (word && *known && strcmp(*known, word) != 0)
		known++;
	return !word || *known;
}

int sandbox_set_runtime(cloche_sandbox *sb, const char *runtime, cloche_err *err)
{
	static const char *const known[] = {"shell", "node", "python", NULL};

	if (!is_one_of(runtime, known))
		return err_set(
			err, E_USAGE, "unknown runtime \"%s\": use shell, node or python", runtime);
	return set_string(&sb->runtime, runtime, err);
}

int sandbox_set_venv(cloche_sandbox *sb, const char *dir, cloche_err *err)
{
	/* It becomes a part of the PATH. */
	if (dir && (!dir[0] || strchr(dir, ':')))
		return err_set(
			err, E_USAGE, "--venv is a directory without \":\", not \"%s\"", dir);
	return set_string(&sb->venv, dir, err);
}

int sandbox_set_package_manager(cloche_sandbox *sb, const char *name, cloche_err *err)
{
	static const char *const known[] = {"npm", "pnpm", "yarn", "bun", NULL};

	if (!is_one_of(name, known))
		return err_set(err, E_USAGE,
			"unknown package manager \"%s\": use npm, pnpm, yarn or bun", name);
	return set_string(&sb->package_manager, name, err);
}

int sandbox_set_record(cloche_sandbox *sb, const char *record, cloche_err *err)
{
	static const char *const known[] = {"ops", "full", "none", NULL};

	if (!is_one_of(record, known))
		return err_set(err, E_USAGE, "--record is ops, full or none, not \"%s\"", record);
	return set_string(&sb->kept_record, record, err);
}

int sandbox_set_sync(cloche_sandbox *sb, const char *what, cloche_err *err)
{
	static const char *const known[] = {"all", "tracked", "none", NULL};

	if (!is_one_of(what, known))
		return err_set(err, E_USAGE, "--sync is all, tracked or none, not \"%s\"", what);
	return set_string(&sb->sync, what, err);
}

int sandbox_set_record_sync(cloche_sandbox *sb, const char *sync, cloche_err *err)
{
	static const char *const known[] = {"always", "interval", "never", NULL};

	if (!is_one_of(sync, known))
		return err_set(err, E_USAGE,
			"--record-sync is always, interval or never, not \"%s\"", sync);
	return set_string(&sb->record_sync, sync, err);
}

int sandbox_set_offline(cloche_sandbox *sb, const char *record, cloche_err *err)
{
	if (record && !record[0])
		return err_set(err, E_USAGE, "--offline needs a sandbox or a file");
	return set_string(&sb->offline, record, err);
}

bool sandbox_is_recorded(const cloche_sandbox *sb)
{
	return sb->kept_record && strcmp(sb->kept_record, "full") == 0;
}

int sandbox_set_name(cloche_sandbox *sb, const char *name, cloche_err *err)
{
	int r = rundir_check_name(name, err);

	return r < 0 ? r : set_string(&sb->name, name, err);
}

bool sandbox_wants_gateway(const cloche_sandbox *sb)
{
	if (sb->net != SANDBOX_NET_AUTO)
		return sb->net == SANDBOX_NET_GATEWAY;
	if (sb->offline || sb->ask)
		return true;
	return sb->allowlist && cloche_allowlist_count(sb->allowlist) > 0;
}
