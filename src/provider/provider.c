/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/provider.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PROVIDER_OPS(name) &name##_provider,
static const struct provider *const providers[] = {PROVIDERS(PROVIDER_OPS)};

enum { PROGRAMS_MAX = 32, REASONS_MAX = 8192 };
/* As many as one process ever asks for. An entry is used if it has a path. */
static struct provider programs[PROGRAMS_MAX];
static pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;

/* "/usr/libexec/cloche/cloche-provider-podman" -> "podman" */
static const char *name_of(const char *path)
{
	const char *base = strrchr(path, '/') + 1;
	bool usual = str_starts(str_from(base), STR(PROVIDER_PROGRAM));

	return usual ? base + strlen(PROVIDER_PROGRAM) : base;
}

/* Takes path, also on failure. The lock is held. */
static const struct provider *find_program(char *path, struct cloche_err *err)
{
	_cleanup_(freep) char *taken = path;
	size_t i;

	for (i = 0; i < PROGRAMS_MAX && programs[i].path; i++)
		if (strcmp(programs[i].path, path) == 0)
			return &programs[i];
	if (i == PROGRAMS_MAX) {
		err_set(err, E_LIMIT, "more than %d providers", PROGRAMS_MAX);
		return NULL;
	}
	programs[i] = program_provider;
	programs[i].path = TAKE_PTR(taken);
	programs[i].name = name_of(programs[i].path);
	return &programs[i];
}

const struct provider *provider_find(struct str name, struct cloche_err *err)
{
	_cleanup_(freep) char *copy = NULL, *path = NULL;
	const struct provider *found;

	for (size_t i = 0; i < ARRAY_SIZE(providers); i++)
		if (str_eq(name, str_from(providers[i]->name)))
			return providers[i];
	copy = str_dup(name);
	path = copy ? provider_program_find(copy, err) : NULL;
	if (!path) {
		if (!copy)
			err_nomem(err);
		return NULL;
	}
	pthread_mutex_lock(&programs_lock);
	found = find_program(TAKE_PTR(path), err);
	pthread_mutex_unlock(&programs_lock);
	return found;
}

/* Return the provider that "auto" would choose now; NULL if none works, and err says why. */
static const struct provider *find_automatic(struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf reasons = BUF_INIT(REASONS_MAX);
	struct cloche_err first = CLOCHE_ERR_INIT;

	for (size_t i = 0; provider_auto_at(i); i++) {
		struct cloche_err why = CLOCHE_ERR_INIT;
		struct provider_about about;
		const struct provider *p = provider_find(str_from(provider_auto_at(i)), &why);

		if (p && provider_about(p, &about, &why) == 0)
			return p;
		if (i == 0)
			first = why;
		/* Do not mention providers that are not installed. */
		if (p && buf_printf(&reasons, "%s%s: %s", buf_len(&reasons) ? "; " : "", p->name,
				 why.message) < 0) {
			err_nomem(err);
			return NULL;
		}
	}
	err_set(err, E_UNSUPPORTED, "no provider works here: %s",
		buf_len(&reasons) ? buf_cstr(&reasons) : first.message);
	if (first.hint[0])
		err_hint(err, "%s", first.hint);
	return NULL;
}

const struct provider *provider_choose(const char *name, struct cloche_err *err)
{
	struct provider_about about;
	const struct provider *p;
	bool or_none;

	if (provider_name_choose(name && name[0] ? name : "auto", &name, err) < 0)
		return NULL;
	or_none = strcmp(name, PROVIDER_AUTO_OR_NONE) == 0;
	if (strcmp(name, "auto") == 0 || or_none) {
		p = find_automatic(err);
		return p || !or_none ? p : provider_find(STR(PROVIDER_UNSANDBOXED), NULL);
	}
	p = provider_find(str_from(name), err);
	return p && provider_about(p, &about, err) == 0 ? p : NULL;
}

int provider_works(const struct provider *p, bool *ret_surely, struct cloche_err *err)
{
	struct provider_about about;
	int r = provider_about(p, &about, err);

	*ret_surely = r == 0 && !about.doubt[0];
	return r;
}

bool provider_any_works(void)
{
	bool surely = false;

	for (size_t i = 0; provider_auto_at(i) && !surely; i++) {
		const struct provider *p = provider_find(str_from(provider_auto_at(i)), NULL);

		surely = p && provider_makes_room(p->name) &&
			 provider_works(p, &surely, NULL) == 0 && surely;
	}
	return surely;
}

int provider_about(const struct provider *p, struct provider_about *ret, struct cloche_err *err)
{
	*ret = (struct provider_about){0};
	return p->probe(p, ret, err);
}

int provider_check_place(const struct provider *p, const char *place, struct cloche_err *err)
{
	if (!place || p->ask_place)
		return 0;
	err_set(err, E_UNSUPPORTED, "provider %s makes rooms on this machine alone, not at %s",
		p->name, place);
	err_hint(err, "use --provider ssh, or leave --place out");
	return -E_UNSUPPORTED;
}

int provider_doctor_place(const struct provider *p, const char *place, provider_check_fn fn,
	void *user, struct cloche_err *err)
{
	int r = provider_check_place(p, place, err);

	return r == 0 ? p->doctor_place(p, place, fn, user, err) : r;
}

int provider_ask_place(const struct provider *p, const char *place, int patience_sec,
	struct provider_asked **ret, struct cloche_err *err)
{
	int r = provider_check_place(p, place, err);

	return r == 0 ? p->ask_place(p, place, patience_sec, ret, err) : r;
}

struct room *room_free(struct room *r)
{
	return r ? r->provider->destroy(r) : NULL;
}

void room_init(struct room *r, const struct provider *p)
{
	*r = (struct room){.provider = p, .control_fd = -1, .watch_fd = -1, .config_fd = -1};
}

void room_done(struct room *r)
{
	fd_close(r->control_fd);
	fd_close(r->watch_fd);
	fd_close(r->config_fd);
	for (unsigned i = 0; i < r->unenforced_n; i++)
		free(r->unenforced[i]);
}

int room_add_unenforced(struct room *r, const char *text, struct cloche_err *err)
{
	if (r->unenforced_n == ROOM_UNENFORCED_MAX)
		return 0;
	r->unenforced[r->unenforced_n] = strdup(text);
	if (!r->unenforced[r->unenforced_n])
		return err_nomem(err);
	r->unenforced_n++;
	return 0;
}

bool room_has_ended(const struct room *r)
{
	struct pollfd p = {.fd = r->watch_fd, .events = POLLIN};

	return r->watch_fd < 0 || poll(&p, 1, 0) > 0;
}

const char *room_isolation(const struct room *r)
{
	return r->isolation ? r->isolation : provider_isolation(r->provider->name);
}

int room_reap(struct room *r, struct rusage *ret, struct cloche_err *err)
{
	int status;

	while (!r->reaped) {
		if (wait4(r->pid, &status, 0, ret) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, errno, "wait for the room");
		}
		r->reaped = true;
		r->exit.exited = WIFEXITED(status);
		r->exit.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
	}
	return 0;
}

static int provider_lacks(const struct provider *p, const char *what, struct cloche_err *err)
{
	return err_set(err, E_UNSUPPORTED, "provider %s %s", p->name, what);
}

bool room_find_owner(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret)
{
	return r->provider->owner && r->provider->owner(r, client, server, ret);
}

void room_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid)
{
	if (r->provider->lend)
		r->provider->lend(r, fd, uid, gid);
}

int room_listeners(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	return r->provider->listeners
		       ? r->provider->listeners(r, ret, err)
		       : provider_lacks(r->provider, "has no network for the gateway", err);
}

int room_sync(struct room *r, int out, int *ret_fd, struct cloche_err *err)
{
	if (r->provider->sync)
		return r->provider->sync(r, out, ret_fd, err);
	return err_set(err, E_UNSUPPORTED,
		"the files of the sandbox are this machine's own: there is nothing to be copied");
}

int room_layers(const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err)
{
	return r->provider->layers
		       ? r->provider->layers(r, ret_upper, ret_lower, err)
		       : provider_lacks(r->provider, "cannot tell what was changed", err);
}

int provider_diff(const struct provider *p, int upper, int lower, room_change_fn fn, void *user,
	struct cloche_err *err)
{
	return p->diff ? p->diff(upper, lower, fn, user, err)
		       : provider_lacks(p, "cannot tell what was changed", err);
}

int provider_diff_kept(const struct provider *p, const char *dir, room_change_fn fn, void *user,
	struct cloche_err *err)
{
	return p->diff_kept ? p->diff_kept(dir, fn, user, err)
			    : provider_lacks(p, "keeps no changes", err);
}
