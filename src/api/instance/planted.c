/* SPDX-License-Identifier: Apache-2.0 */
#include "api/instance/planted.h"
#include "base/fd.h"
#include "ipc/rundir.h"
#include "job/job.h"
#include "manager/looks.h"
#include "manager/sandboxes.h"
#include <stdio.h>

static void planted_add(const cloche_planted *p, void *user)
{
	json_array_append_new(
		user, json_pack("{s:o, s:o, s:o, s:o, s:b}", "path", json_text(p->path), "what",
			      json_text(p->what), "set_aside", json_text(p->set_aside), "restore",
			      json_text(p->restore), "notice", p->notice));
}

struct taker {
	cloche_planted_fn fn;
	void *user;
};

JOB_TELL1(planted_call, cloche_planted_fn, const cloche_planted *)

static void planted_line(const struct taker *t, const char *id, struct str line)
{
	_cleanup_json_ json_t *o = NULL;
	cloche_planted thing = {.sandbox = id};

	if (json_text_read(line, 0, &o, NULL) < 0)
		return;
	thing.path = json_string_value(json_object_get(o, "path"));
	thing.quoted = json_string_value(json_object_get(o, "quoted"));
	thing.what = json_string_value(json_object_get(o, "what"));
	thing.set_aside = json_string_value(json_object_get(o, "set_aside"));
	thing.restore = json_string_value(json_object_get(o, "restore"));
	thing.notice = json_is_true(json_object_get(o, "notice"));
	if (thing.path && thing.quoted && thing.what)
		planted_call(t->fn, &thing, t->user);
}

/* The first line says how many more there are that are not listed. */
static void planted_more(const struct taker *t, const char *id, struct str line)
{
	_cleanup_json_ json_t *o = NULL;
	char what[96];
	json_int_t n;

	if (json_text_read(line, 0, &o, NULL) < 0)
		return;
	n = json_integer_value(json_object_get(o, "more"));
	snprintf(what, sizeof(what),
		"%lld more things, set aside (*.cloche-set-aside) or to be looked at",
		(long long)n);
	if (n > 0)
		planted_call(t->fn,
			&(cloche_planted){.sandbox = id, .path = "", .quoted = "", .what = what},
			t->user);
}

static void planted_text(void *user, const char *id, struct str text)
{
	const struct taker *t = user;
	struct str first = str_next_line(&text);

	while (text.n)
		planted_line(t, id, str_next_line(&text));
	planted_more(t, id, first);
}

static void planted_failed(void *user, const char *id, const char *why)
{
	const struct taker *t = user;

	planted_call(t->fn, &(cloche_planted){.sandbox = id, .path = "", .quoted = "", .what = why},
		t->user);
}

static int planted_tell(
	const char *sandbox, bool forget, cloche_planted_fn fn, void *user, struct cloche_err *err)
{
	struct taker t = {fn, user};
	_cleanup_fd_ int base = -1;

	if (sandbox && !rundir_is_id(str_from(sandbox)))
		return err_set(err, E_USAGE, "\"%.100s\" is not the id of a sandbox", sandbox);
	base = rundir_open(err);
	if (base < 0)
		return base;
	if (!sandbox)
		sandboxes_look(base, planted_failed, &t);
	looks_take(base, sandbox, forget, planted_text, &t);
	return 0;
}

int cloche_planted_take(const char *sandbox, cloche_planted_fn fn, void *user, cloche_err *err)
{
	return planted_tell(sandbox, true, fn, user, err);
}

int cloche_planted_look(const char *sandbox, cloche_planted_fn fn, void *user, cloche_err *err)
{
	return planted_tell(sandbox, false, fn, user, err);
}

json_t *planted_list(const char *sandbox)
{
	_cleanup_fd_ int base = rundir_open(NULL);
	json_t *list = json_array();
	struct taker t = {planted_add, list};

	if (list && base >= 0 && rundir_is_id(str_from(sandbox)))
		looks_take(base, sandbox, false, planted_text, &t);
	return list;
}
