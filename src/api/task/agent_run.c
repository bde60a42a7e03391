/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a run of an agent is an ordinary run, of its program, in a sandbox to which
 * its driver has added something. What the person has configured wins over that. Its home lies
 * where the room has no other, and nothing on the host obeys what is in it (docs/design/agents.md).
 */
#include "api/run/run.h"
#include "api/task/agent_sandbox.h"
#include "api/task/homes.h"
#include "base/program.h"
#include "fs/fs.h"
#include "provider/provider.h"
#include "secrets/secret_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct agent_start {
	struct agent_driver *driver;
	cloche_sandbox *sb;
	struct agent_home home;
	char **argv, **of_keys; /* of_keys: arguments that belong to credentials */
	cloche_warning_fn fn;
	void *user;
};

static void agent_start_done(struct agent_start *s)
{
	agent_driver_free(s->driver);
	cloche_sandbox_free(s->sb);
	agent_home_done(&s->home);
	strv_free(s->argv);
	strv_free(s->of_keys);
}

__attribute__((format(printf, 2, 3))) static void agent_tell(
	const struct agent_start *s, const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (s->fn)
		s->fn(line, s->user);
}

static int agent_refuse_place(const struct agent_start *s, struct cloche_err *err)
{
	const cloche_sandbox *sb = s->sb;
	bool elsewhere = sandbox_is_elsewhere(sb);
	const char *what = elsewhere ? "a sandbox elsewhere" : "a provider without a room";
	struct sandbox_user user;
	int r;

	if (elsewhere || (sb->provider && !provider_makes_room(sb->provider))) {
		err_set(err, E_UNSUPPORTED,
			"%s keeps its home on this machine, in a room: not with %s",
			s->driver->title, what);
		err_hint(err, "\"cloche run\" and \"cloche agent\" can do that");
		return -E_UNSUPPORTED;
	}
	r = sandbox_find_user(sb, &user, err);
	if (r == 0 && user.uid != 0 && geteuid() == 0)
		return err_set(err, E_UNSUPPORTED,
			"user %u: the home of an agent that root starts belongs to root", user.uid);
	return r;
}

/* Refuse what would say that it has renewed the agent: its program stays as it is outside. */
static int agent_refuse_update(
	const struct agent_start *s, const char *const *arguments, struct cloche_err *err)
{
	const struct agent_driver *d = s->driver;

	for (char *const *o = d->outside; o && *o && arguments && *arguments; o++) {
		if (strcmp(*o, *arguments) != 0)
			continue;
		err_set(err, E_USAGE,
			"each start has the program of %s as it is outside: what \"%s\" changes in "
			"a room is lost",
			d->title, *o);
		err_hint(err, "run it without cloche: %s %s", d->program, *o);
		return -E_USAGE;
	}
	return 0;
}

static int agent_add_program(struct agent_start *s, struct cloche_err *err)
{
	const char *name = s->driver->program, *inside = NULL;
	_cleanup_(freep) char *found = s->sb->root == ROOM_ROOT_HOST ? program_on_path(name) : NULL;
	int r;

	if (s->sb->root == ROOM_ROOT_HOST && !found) {
		err_set(err, E_COMMAND_NOT_FOUND,
			"%s is not installed: there is no \"%s\" on your PATH", s->driver->title,
			name);
		if (s->driver->install)
			err_hint(err, "install it: %s", s->driver->install);
		return -E_COMMAND_NOT_FOUND;
	}
	r = cloche_sandbox_add_command(s->sb, name, &inside, err);
	if (r == 0 && strv_add(&s->argv, str_from(inside)) < 0)
		r = err_nomem(err);
	return r;
}

/* --- its home --- */

/* Nothing may be mounted in it: its directories are the agent's. */
static int agent_refuse_covered(const struct agent_start *s, struct cloche_err *err)
{
	for (size_t i = 0; i < s->sb->mounts_n; i++) {
		const struct room_mount *m = &s->sb->mounts[i];
		const char *also = sandbox_second_path(s->sb, m);

		if (!fs_is_within(m->target, HOMES_INSIDE) &&
			!(also && fs_is_within(also, HOMES_INSIDE)))
			continue;
		err_set(err, E_USAGE, "mount %s: the home of the agent is at " HOMES_INSIDE,
			m->source);
		err_hint(err, "mount it somewhere else");
		return -E_USAGE;
	}
	return 0;
}

/* Where `npm install -g` and `pip install` put programs, since the system's places are closed. */
static int agent_open_prefixes(struct agent_start *s, struct cloche_err *err)
{
	static const struct {
		const char *name, *value;
	} variables[] = {{"HOME", HOMES_INSIDE}, {"npm_config_prefix", HOMES_INSIDE "/.local"},
		/* Debian's pip refuses its own --user otherwise. */
		{"PIP_BREAK_SYSTEM_PACKAGES", "1"}};
	int r = sandbox_add_path(s->sb, HOMES_INSIDE "/.local/bin", err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++)
		if (i == 0 || !strv_env_get(s->sb->env, variables[i].name))
			r = cloche_sandbox_set_env(
				s->sb, variables[i].name, variables[i].value, err);
	return r;
}

/* Without a project the agent works in its home: all else in the room is gone at the end. */
static int agent_work_at_home(struct agent_start *s, struct cloche_err *err)
{
	if (s->sb->workspace || s->sb->workdir || s->sb->image_workdir)
		return 0;
	if (mkdirat(s->home.dir, HOMES_WORK, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s/" HOMES_WORK, s->home.path);
	agent_tell(s, "without a workspace, %s works in %s/" HOMES_WORK ", which is kept",
		s->driver->name, s->home.path);
	return sandbox_set_workdir(s->sb, HOMES_INSIDE "/" HOMES_WORK, err);
}

static int agent_add_home(struct agent_start *s, bool fresh, struct cloche_err *err)
{
	const char *project = s->sb->workspace ? s->sb->workspace : "";
	_cleanup_(freep) char *name = NULL;
	int r = agent_refuse_covered(s, err);

	if (r == 0)
		r = homes_name(s->driver->name, project, &name, err);
	if (r == 0 && fresh)
		r = cloche_home_remove(name, err);
	if (r == -E_NOT_FOUND) {
		err_clear(err);
		r = 0;
	}
	if (r == 0)
		r = homes_open(s->driver, project, s->fn, s->user, &s->home, err);
	if (r < 0)
		return r;
	if (s->home.is_shared)
		agent_tell(s, "another %s of this project runs: both have the same home",
			s->driver->name);
	else if (s->home.is_new)
		agent_tell(s,
			"%s has a home of its own for this project, which is kept: cloche home",
			s->driver->name);
	r = agent_work_at_home(s, err);
	if (r == 0)
		r = sandbox_add_mount(s->sb, TAKE_FD(s->home.dir),
			&(struct room_mount){.source = s->home.path,
				.target = (char[]){HOMES_INSIDE},
				.found = true,
				.unobeyed = true},
			err);
	s->sb->keeps_home = true;
	return r < 0 ? r : agent_open_prefixes(s, err);
}

/* --- variables and credentials --- */

static int agent_pass(struct agent_start *s, struct cloche_err *err)
{
	int r = 0;

	for (char *const *name = s->driver->pass; r == 0 && name && *name; name++) {
		const char *value = secure_getenv(*name);

		if (value && !strv_env_get(s->sb->env, *name))
			r = cloche_sandbox_set_env(s->sb, *name, value, err);
	}
	return r;
}

static int agent_add_variables(struct agent_start *s, struct cloche_err *err)
{
	int r = agent_add_environment(s->sb, &s->driver->env, HOMES_INSIDE, err);

	if (r == 0)
		r = agent_add_environment(s->sb, &s->driver->terminal_env, HOMES_INSIDE, err);
	return r < 0 ? r : agent_pass(s, err);
}

/* The URL of another API, if the person has set one: of the sandbox, else of the environment. */
static const char *agent_base_url(const struct agent_start *s, const struct agent_key *key)
{
	const char *url = key->base_url ? strv_env_get(s->sb->env, key->base_url) : NULL;

	if (key->base_url && !url)
		url = secure_getenv(key->base_url);
	return url && *url ? url : NULL;
}

/* Store "HOST[:PORT]" of an https URL in *ret_hosts, and HOST alone in *ret_scopes. */
static int agent_url_hosts(const struct agent_key *key, const char *url, char ***ret_hosts,
	char ***ret_scopes, struct cloche_err *err)
{
	struct str text = str_from(url), scheme = STR("https://");
	struct str rest = str_starts(text, scheme) ? str_from_index(text, scheme.n) : STR_NULL;
	struct str authority = str_prefix(rest, str_chr(rest, '/'));
	struct host host;
	uint16_t port;

	if (!rest.p || host_parse_authority(authority, &host, &port) < 0) {
		err_set(err, E_CONFIG, "%s is no https URL, so %s cannot be masked for it",
			key->base_url, key->env);
		err_hint(err, "set it to one, such as https://llm.example.com/v1, or unset it");
		return -E_CONFIG;
	}
	return strv_add(ret_hosts, authority) < 0 || strv_add(ret_scopes, host_str(&host)) < 0
		       ? err_nomem(err)
		       : 0;
}

static int agent_add_key(struct agent_start *s, const struct agent_key *key,
	const struct agent_found *found, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **hosts = NULL, **scopes = NULL;
	const char *url = agent_base_url(s, key);
	int r = url ? agent_url_hosts(key, url, &hosts, &scopes, err) : 0;

	if (r == 0)
		r = agent_add_hosts(s->sb, s->driver->name, url ? hosts : key->hosts, err);
	if (r == 0 && url && !strv_env_get(s->sb->env, key->base_url))
		r = cloche_sandbox_set_env(s->sb, key->base_url, url, err);
	if (r == 0 && !agent_has_key(s->sb, key))
		r = agent_mask_key(s->sb, key, url ? scopes : key->hosts, found, err);
	if (r == 0)
		r = agent_check_withheld(s->sb, key, s->driver->name, err);
	if (r == 0)
		r = agent_add_environment(s->sb, &key->environment, HOMES_INSIDE, err);
	for (char *const *a = key->arguments; r == 0 && a && *a; a++)
		r = strv_add(&s->of_keys, str_from(*a)) < 0 ? err_nomem(err) : 0;
	return r;
}

static void agent_tell_keyless(const struct agent_start *s)
{
	_cleanup_(buf_donep) struct buf names = BUF_INIT(256);
	const struct agent_driver *d = s->driver;

	for (size_t i = 0; i < d->keys_n; i++)
		if (buf_printf(&names, "%s%s", i ? ", " : "", d->keys[i].env) < 0)
			return;
	if (buf_cstr(&names))
		agent_tell(s,
			"no key is set (%s): what you log in with inside is not masked, and "
			"stays in its home",
			buf_cstr(&names));
}

static int agent_add_keys(struct agent_start *s, struct cloche_err *err)
{
	const struct agent_driver *d = s->driver;
	size_t given = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->keys_n && (given == 0 || d->every_key); i++) {
		_cleanup_(agent_found_done) struct agent_found found;

		r = agent_key_find(d, &d->keys[i], &found, err);
		if (found.expired)
			agent_tell(s,
				"the login in ~/%s has expired: start %s once without cloche, "
				"which renews it",
				d->keys[i].login.file, d->program);
		if (r < 0 || (!found.value && !agent_has_key(s->sb, &d->keys[i])))
			continue;
		given++;
		r = agent_add_key(s, &d->keys[i], &found, err);
	}
	if (r == 0 && given == 0 && d->keys_n > 0)
		agent_tell_keyless(s);
	return r;
}

/* So that the agent does not ask about a key that it has seen. */
static int agent_settle_secrets(struct agent_start *s, struct cloche_err *err)
{
	const char *project = s->sb->workspace ? s->sb->workspace : "";
	uint8_t key[SHA256_BYTES];
	int r;

	if (!s->sb->secrets)
		return 0;
	r = homes_key(key, err);
	if (r == 0)
		r = secret_set_settle(s->sb->secrets->set, key, str_from(project), err);
	explicit_bzero(key, sizeof(key));
	return r;
}

/* --- the whole --- */

static int agent_add_arguments(
	struct agent_start *s, const char *const *arguments, struct cloche_err *err)
{
	bool plain = false; /* nothing may stand before its words */
	int r = 0;

	for (char *const *c = s->driver->subcommands; c && *c && arguments && *arguments; c++)
		plain |= strcmp(*c, *arguments) == 0;
	for (char *const *a = s->of_keys; r == 0 && !plain && a && *a; a++)
		r = strv_add(&s->argv, str_from(*a));
	for (char *const *a = s->driver->no_prompts; r == 0 && !plain && a && *a; a++)
		r = strv_add(&s->argv, str_from(*a));
	for (; r == 0 && arguments && *arguments; arguments++)
		r = strv_add(&s->argv, str_from(*arguments));
	return r < 0 ? err_nomem(err) : 0;
}

int cloche_agent_run_new(const cloche_sandbox *sb, const char *agent, const char *const *arguments,
	bool fresh, cloche_warning_fn fn, void *user, cloche_run **ret, cloche_err *err)
{
	_cleanup_(agent_start_done) struct agent_start s = {
		.sb = sandbox_copy(sb), .home = AGENT_HOME_INIT, .fn = fn, .user = user};
	int r = s.sb ? agent_driver_get(agent, &s.driver, err)
		     : err_sys(err, errno, "copy a sandbox's configuration");

	if (r == 0)
		r = agent_refuse_place(&s, err);
	if (r == 0)
		r = agent_refuse_update(&s, arguments, err);
	if (r == 0)
		r = agent_add_program(&s, err);
	if (r == 0)
		r = agent_add_hosts(s.sb, s.driver->name, s.driver->hosts, err);
	if (r == 0)
		r = agent_add_hosts(s.sb, s.driver->name, s.driver->terminal_hosts, err);
	if (r == 0)
		r = agent_add_keys(&s, err);
	if (r == 0)
		r = agent_add_variables(&s, err);
	if (r == 0)
		r = agent_settle_secrets(&s, err);
	if (r == 0)
		r = agent_add_arguments(&s, arguments, err);
	if (r == 0)
		r = agent_add_home(&s, fresh, err);
	if (r == 0)
		r = run_new_take(TAKE_PTR(s.sb), s.argv, ret, err);
	if (r == 0)
		(*ret)->with_it = TAKE_FD(s.home.held);
	return r;
}

/* --- drivers, for programs --- */

bool cloche_agent_exists(const char *name)
{
	return agent_driver_is(name);
}

int cloche_agent_list(cloche_agent_fn fn, void *user, cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = agent_driver_names(&names, err);

	for (char *const *n = names; r == 0 && *n; n++) {
		_cleanup_(agent_driver_freep) struct agent_driver *d = NULL;
		int got = agent_driver_get(*n, &d, NULL);

		if (got == -E_NO_MEMORY)
			r = err_nomem(err);
		else if (got == 0)
			fn(d->name, d->title, user);
	}
	return r;
}

int cloche_home_name(const cloche_sandbox *sb, const char *agent, char **ret, cloche_err *err)
{
	return homes_name(agent, sb->workspace ? sb->workspace : "", ret, err);
}
