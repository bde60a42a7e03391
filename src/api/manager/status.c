/* SPDX-License-Identifier: Apache-2.0 */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "config.h"
#include "ipc/rundir.h"
#include "job/job.h"
#include "manager/cleanup.h"
#include "provider/provider.h"

#include <stdio.h>

enum { BETWEEN_MS = 200 };
#define PROVIDER_NAME(name) #name,

struct sandbox_status {
	cloche_instance *i;
	cloche_stats before, now;
	bool answers;
};

struct provider_look {
	cloche_provider_status status; /* with parts of the others, and of names */
	struct provider_about about;
	struct cloche_err why;
};

struct status {
	cloche_status told;                  /* must be first */
	const cloche_provider_status **list; /* ends with NULL */
	char **names;                        /* of providers */
	struct provider_look *providers;
	size_t providers_n;
	struct sandbox_status *sandboxes;
	size_t n;
	bool no_memory;
	struct cleanup cleanup;
	struct places *places; /* NULL: none was asked */
	json_t *document;
	char *json;
};

/* --- providers --- */

bool status_has_supervisor(struct cloche_err *err)
{
	_cleanup_(freep) char *path = program_find("cloche-supervisor", err);

	return path;
}

/* Those of cloche in the order of "auto", then all others that are known by name. */
static int list_providers(char ***ret)
{
	_cleanup_(strv_freep) char **names = NULL, **others = NULL;
	const char *name;
	int r = provider_names_add_others(&others);

	for (size_t i = 0; r == 0 && (name = provider_name_at(i)); i++)
		r = strv_add(&names, str_from(name));
	for (size_t i = 0; r == 0 && others && others[i]; i++)
		r = strv_add(&names, str_from(others[i]));
	if (r == 0)
		*ret = TAKE_PTR(names);
	return r;
}

static void look_at_provider(const char *name, bool automatic, struct provider_look *ret)
{
	const struct provider *p;
	bool works;

	*ret = (struct provider_look){.why = CLOCHE_ERR_INIT};
	p = provider_find(str_from(name), &ret->why);
	works = p && provider_about(p, &ret->about, &ret->why) == 0 &&
		status_has_supervisor(&ret->why);
	ret->status = (cloche_provider_status){.name = name,
		.automatic = automatic,
		.available = works,
		.reason = ret->why.message,
		.advice = works ? ret->about.doubt : ret->why.hint,
		.version = p && !p->path ? CLOCHE_VERSION : ret->about.version};
}

JOB_TELL1(tell_provider, cloche_provider_fn, const cloche_provider_status *)

void cloche_provider_each(cloche_provider_fn fn, void *user)
{
	_cleanup_(strv_freep) char **names = NULL;

	if (list_providers(&names) < 0)
		return;
	for (size_t i = 0; names[i]; i++) {
		struct provider_look look;

		look_at_provider(names[i], provider_is_auto(names[i]), &look);
		tell_provider(fn, &look.status, user);
	}
}

static int look_at_providers(struct status *s, struct cloche_err *err)
{
	size_t n;

	if (list_providers(&s->names) < 0)
		return err_nomem(err);
	n = strv_count(s->names);
	s->providers = calloc(n, sizeof(*s->providers));
	s->list = calloc(n + 1, sizeof(cloche_provider_status *));
	if (!s->providers || !s->list)
		return err_nomem(err);
	for (; s->providers_n < n; s->providers_n++)
		look_at_provider(s->names[s->providers_n],
			provider_is_auto(s->names[s->providers_n]), &s->providers[s->providers_n]);
	return 0;
}

static int look_at_cleanup(struct status *s, struct cloche_err *err)
{
	_cleanup_fd_ int base = rundir_open(err);

	if (base < 0)
		return base;
	cleanup_read(base, &s->cleanup);
	return 0;
}

/* --- sandboxes --- */

static bool on_sandbox(const cloche_instance *i, void *user)
{
	struct status *s = user;
	struct sandbox_status *more = reallocarray(s->sandboxes, s->n + 1, sizeof(*more)),
			      *b = NULL;

	if (more) {
		s->sandboxes = more;
		b = &more[s->n];
		*b = (struct sandbox_status){.i = instance_copy(i),
			.before.size = sizeof(cloche_stats),
			.now.size = sizeof(cloche_stats)};
	}
	if (!b || !b->i) {
		s->no_memory = true;
		return false;
	}
	s->n++;
	return true;
}

static void look_first(struct status *s)
{
	size_t n = 0;

	for (size_t k = 0; k < s->n; k++) {
		struct sandbox_status *b = &s->sandboxes[k];

		/* Skip a sandbox that has gone since. */
		if (cloche_instance_refresh(b->i, NULL) < 0) {
			cloche_instance_free(b->i);
			continue;
		}
		b->answers = cloche_instance_stats(b->i, &b->before, NULL) == 0;
		s->sandboxes[n++] = *b;
	}
	s->n = n;
}

/* How much of a CPU is used shows only after some time, so this wait has no event. */
static int look_again(struct status *s, struct cloche_err *err)
{
	int r = s->n > 0 ? job_wait(NULL, 0, BETWEEN_MS) : 0;

	if (r < 0)
		return err_sys(err, -r, "look at the sandboxes");
	for (size_t k = 0; k < s->n; k++) {
		struct sandbox_status *b = &s->sandboxes[k];

		b->answers = b->answers && cloche_instance_stats(b->i, &b->now, NULL) == 0;
	}
	return 0;
}

static double cpu_percent(const struct sandbox_status *b)
{
	uint64_t passed = b->now.at_us - b->before.at_us;

	if (!b->answers || passed == 0 || b->now.cpu_us < b->before.cpu_us)
		return 0;
	return 100.0 * (double)(b->now.cpu_us - b->before.cpu_us) / (double)passed;
}

static double in_mb(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void tell(struct status *s)
{
	static const cloche_place_status *const no_places[] = {NULL};
	cloche_status *told = &s->told;

	*told = (cloche_status){.size = sizeof(*told),
		.providers = s->list,
		.places = no_places,
		.sandboxes = s->n,
		.cleanup_us = s->cleanup.at_usec,
		.cleanup_error_us = s->cleanup.error_at,
		.cleanup_error = s->cleanup.error};
	for (size_t k = 0; k < s->providers_n; k++)
		s->list[k] = &s->providers[k].status;
	for (size_t k = 0; k < s->n; k++) {
		const struct sandbox_status *b = &s->sandboxes[k];

		told->cpu_percent += cpu_percent(b);
		told->memory_bytes += b->answers ? b->now.memory_bytes : 0;
		told->commands_running += b->answers ? b->now.commands_running : 0;
	}
}

/* --- the document --- */

json_t *status_time(uint64_t us)
{
	char text[CLOCK_ISO_MAX];

	if (us == 0)
		return json_null();
	clock_format_utc(us, text);
	return json_string(text);
}

static json_t *describe_provider(const cloche_provider_status *p)
{
	/* Programs of others may say any bytes. */
	return json_pack("{s:s, s:b, s:b, s:o, s:o, s:o}", "name", p->name, "automatic",
		(int)p->automatic, "available", (int)p->available, "reason",
		json_utf8(str_from(p->reason)), "advice", json_utf8(str_from(p->advice)), "version",
		p->version[0] ? json_utf8(str_from(p->version)) : json_null());
}

json_t *status_container(const char *provider, const char *id)
{
	static const char *const programs[] = {PROVIDER_PROGRAMS(PROVIDER_NAME)};
	bool makes = false;

	for (size_t k = 0; k < ARRAY_SIZE(programs); k++)
		makes |= strcmp(programs[k], provider) == 0;
	/* These two make none: the room is the account's, or the service has names of its own. */
	if (!makes || strcmp(provider, "ssh") == 0 || strcmp(provider, "e2b") == 0)
		return json_null();
	return json_sprintf("agentgate-%s", id);
}

static json_t *describe_sandbox(const struct sandbox_status *b)
{
	return json_pack("{s:s, s:s, s:s?, s:s, s:s, s:o, s:s, s:o, s:{s:f, s:f}, s:I}", "id",
		cloche_instance_id(b->i), "name", b->i->info.name, "runId",
		cloche_instance_label(b->i, INSTANCE_LABEL_RUN), "provider", b->i->info.provider,
		"isolation", b->i->info.isolation, "containerId",
		status_container(b->i->info.provider, cloche_instance_id(b->i)), "status",
		b->i->info.state_name, "createdAt", status_time(b->i->info.created_us),
		"resourceUsage", "cpuPercent", cpu_percent(b), "memoryMB",
		b->answers ? in_mb(b->now.memory_bytes) : 0.0, "commandsRunning",
		(json_int_t)(b->answers ? b->now.commands_running : 0));
}

static json_t *status_describe(const struct status *s)
{
	const cloche_status *t = &s->told;
	json_t *providers = json_array(), *sandboxes = json_array();
	const char *chosen = NULL;
	bool docker = false;

	for (size_t k = 0; k < s->providers_n; k++) {
		const cloche_provider_status *p = &s->providers[k].status;

		if (p->available && p->automatic && !chosen)
			chosen = p->name;
		docker |= p->available && strcmp(p->name, "docker") == 0;
		json_array_append_new(providers, describe_provider(p));
	}
	for (size_t k = 0; k < s->n; k++)
		json_array_append_new(sandboxes, describe_sandbox(&s->sandboxes[k]));
	return json_pack("{s:s?, s:o, s:b, s:i, s:o, s:{s:f, s:f, s:I}, s:o, s:o, s:o}", "provider",
		chosen, "providers", providers, "dockerAvailable", (int)docker, "activeSandboxes",
		(int)s->n, "sandboxes", sandboxes, "totals", "cpuPercent", t->cpu_percent,
		"memoryMB", in_mb(t->memory_bytes), "commandsRunning",
		(json_int_t)t->commands_running, "lastCleanup", status_time(t->cleanup_us),
		"lastError",
		t->cleanup_error_us ? json_utf8(str_from(t->cleanup_error)) : json_null(),
		"lastErrorAt", status_time(t->cleanup_error_us));
}

static int write_document(struct status *s, struct cloche_err *err)
{
	free(s->json);
	s->json = s->document ? json_dumps(s->document, JSON_INDENT(2) | JSON_REAL_PRECISION(15))
			      : NULL;
	s->told.json = s->json;
	return s->json ? 0 : err_nomem(err);
}

/* Add a member (taken) to the document. */
static int status_add(struct status *s, const char *name, json_t *member, struct cloche_err *err)
{
	return json_object_set_new(s->document, name, member) < 0 ? err_nomem(err) : 0;
}

static int status_look(struct status *s, struct cloche_err *err)
{
	int r = look_at_providers(s, err);

	if (r == 0)
		r = instance_list(false, on_sandbox, NULL, s, err);
	if (r == 0 && s->no_memory)
		r = err_nomem(err);
	if (r == 0)
		r = look_at_cleanup(s, err);
	if (r < 0)
		return r;
	look_first(s);
	r = look_again(s, err);
	if (r < 0)
		return r;
	tell(s);
	s->document = status_describe(s);
	return 0;
}

static int status_ask(
	struct status *s, const cloche_sandbox *const *sandboxes, size_t n, struct cloche_err *err)
{
	int r = places_ask(sandboxes, n, &s->places, err);

	if (r < 0)
		return r;
	s->told.places = places_list(s->places);
	return status_add(s, "places", places_describe(s->places), err);
}

int cloche_status_read(cloche_manager *manager, const cloche_sandbox *const *sandboxes, size_t n,
	cloche_status **ret, cloche_err *err)
{
	struct status *s = calloc(1, sizeof(*s));
	int r = s ? status_look(s, err) : err_nomem(err);

	if (r == 0 && manager)
		r = status_add(s, "manager", manager_status(manager), err);
	if (r == 0 && n > 0)
		r = status_ask(s, sandboxes, n, err);
	if (r == 0)
		r = write_document(s, err);
	if (r == 0)
		*ret = &s->told;
	else if (s)
		cloche_status_free(&s->told);
	return r;
}

void cloche_status_free(cloche_status *told)
{
	struct status *s;

	if (!told)
		return;
	s = container_of(told, struct status, told);
	for (size_t k = 0; k < s->n; k++)
		cloche_instance_free(s->sandboxes[k].i);
	free(s->sandboxes);
	free(s->providers);
	free(s->list);
	places_free(s->places);
	strv_free(s->names);
	json_decref(s->document);
	free(s->json);
	free(s);
}
