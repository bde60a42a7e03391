/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a handle is an id and the directory of all sandboxes; each call looks again.
 * Whether a sandbox lives is decided by its lock (manager/sandboxes.h). All else comes from its
 * record and, if it lives, from its supervisor, over a connection made for that one question. */
#include "api/instance/instance.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "job/job.h"
#include "manager/own.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { MAX_RECORD = 1024 * 1024, MAX_JSON = 16 * 1024 * 1024 };
#define BEGINNING_USEC (2 * USEC_PER_SEC) /* for a new sandbox to begin to listen */
#define AGAIN_USEC (5 * USEC_PER_MSEC)

_Static_assert((int)SANDBOX_LIVE == CLOCHE_INSTANCE_RUNNING &&
		       (int)SANDBOX_ENDED == CLOCHE_INSTANCE_STOPPED &&
		       (int)SANDBOX_CRASHED == CLOCHE_INSTANCE_CRASHED,
	"the public states are those of a sandbox's directory");

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Point to what the last refresh has read. */
static void tell(cloche_instance *i)
{
	static const char *const names[] = {[CLOCHE_INSTANCE_RUNNING] = "running",
		[CLOCHE_INSTANCE_STOPPED] = "stopped",
		[CLOCHE_INSTANCE_CRASHED] = "crashed"};

	i->info = (cloche_instance_info){.size = sizeof(i->info),
		.id = i->id,
		.state = (enum cloche_instance_state)i->life,
		.state_name = names[i->life],
		.name = text_at(i->record, "name"),
		.provider = text_at(i->record, "provider"),
		.runtime = text_at(json_object_get(i->record, "config"), "runtime"),
		.isolation = text_at(i->record, "isolation"),
		.command = i->command ? i->command : "",
		.created_us = json_count_at(i->record, "created_usec"),
		.ended_us = json_count_at(i->record, "ended_usec"),
		.json = i->json ? i->json : "{}"};
}

static cloche_instance *instance_alloc(int base)
{
	cloche_instance *i = calloc(1, sizeof(*i));

	if (i)
		i->base = base < 0 ? -1 : fcntl(base, F_DUPFD_CLOEXEC, 3);
	if (i && base >= 0 && i->base < 0) {
		free(i);
		return NULL;
	}
	if (i)
		tell(i);
	return i;
}

cloche_instance *instance_copy(const cloche_instance *instance)
{
	cloche_instance *copy = instance_alloc(instance->base);

	if (copy)
		memcpy(copy->id, instance->id, sizeof(copy->id));
	return copy;
}

static void forget(cloche_instance *instance)
{
	json_decref(instance->record);
	free(instance->json);
	free(instance->command);
	instance->record = NULL;
	instance->json = instance->command = NULL;
	tell(instance);
}

void cloche_instance_free(cloche_instance *instance)
{
	if (!instance)
		return;
	forget(instance);
	fd_close(instance->base);
	free(instance);
}

static int not_there(const char *text, struct cloche_err *err)
{
	err_set(err, E_NOT_FOUND, "there is no sandbox \"%s\"", text);
	err_hint(err, "\"cloche ps -a\" lists all sandboxes");
	return -E_NOT_FOUND;
}

int cloche_instance_open(const char *id_or_name, cloche_instance **ret, cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *i = instance_alloc(-1);
	int r;

	if (!i)
		return err_nomem(err);
	i->base = rundir_open(err);
	if (i->base < 0)
		return i->base;
	if (rundir_is_id(str_from(id_or_name))) {
		memcpy(i->id, id_or_name, RUNDIR_ID_BYTES + 1);
		if (faccessat(i->base, i->id, F_OK, 0) < 0)
			return not_there(id_or_name, err);
	} else {
		r = sandbox_resolve(i->base, id_or_name, i->id, err);
		if (r == -E_NOT_FOUND)
			return not_there(id_or_name, err);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(i);
	return 0;
}

bool instance_is_kept(const cloche_instance *instance)
{
	char path[sizeof(instance->id) + sizeof(RUNDIR_EXECS) + 1];

	snprintf(path, sizeof(path), "%s/" RUNDIR_EXECS, instance->id);
	return faccessat(instance->base, path, F_OK, 0) == 0;
}

int instance_open_entry(
	const cloche_instance *instance, struct sandbox_entry *ret, struct cloche_err *err)
{
	int r = sandbox_open(instance->base, instance->id, ret, err);

	if (r == -E_NOT_FOUND)
		return not_there(instance->id, err);
	if (r < 0 || ret->life != SANDBOX_CRASHED)
		return r;
	sandbox_entry_done(ret);
	sandboxes_sweep(instance->base, NULL, NULL);
	return err_set(err, E_NOT_FOUND,
		"sandbox %s is gone: its supervisor was killed; what it left was removed",
		instance->id);
}

/* Read the record: *ret is NULL if there is none (yet), or none that can be understood. Return an
 * error if one that may be there could not be read. */
static int read_record(const struct sandbox_entry *entry, json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_RECORD);
	struct cloche_err own = CLOCHE_ERR_INIT;
	int r = sandbox_read_record(entry, &text, &own);

	*ret = NULL;
	if (r < 0 && (own.sys_errno == ENOENT || r == -E_NOT_FOUND || r == -E_CORRUPT))
		return 0;
	if (r < 0 && err)
		*err = own;
	if (r == 0 && json_text_read(buf_str(&text), 0, ret, NULL) == -ENOMEM)
		r = err_nomem(err);
	return r;
}

/* Set the error, with the reason if the sandbox did not end in order. */
static int instance_has_ended(const struct sandbox_entry *entry, struct cloche_err *err)
{
	_cleanup_json_ json_t *record = NULL;
	struct str why;

	(void)!read_record(entry, &record, NULL);
	why = json_str_at(record, "error");
	err_set(err, E_NOT_FOUND, "sandbox %s has ended%s%.*s", entry->id, why.n ? ": " : "",
		STR_FMT(why));
	err_hint(err, "its logs stay until it is removed: cloche logs %s", entry->id);
	return -E_NOT_FOUND;
}

/* Return whether the sandbox has recorded its end. It may still be cleaning up. */
static bool is_over(const struct sandbox_entry *entry)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_JSON);

	return sandbox_read_record(entry, &text, NULL) == 0 &&
	       str_starts(buf_str(&text), STR(RECORD_ENDED));
}

/* Wait until a sandbox begins to listen, or ends, or until this time. *watch is -1 the first time:
 * then only begin to watch, as it may have done so before. */
static int await_change(const cloche_instance *instance, const struct sandbox_entry *entry,
	int *watch, uint64_t until, struct cloche_err *err)
{
	uint64_t now = clock_mono_usec();
	int r;

	if (*watch == -1) {
		/* Its socket or its record gets its name, or it is removed. */
		*watch = fs_notify(entry->dir, IN_MOVED_TO | IN_DELETE_SELF);
		if (*watch >= 0)
			return 0;
	}
	if (now >= until)
		return err_set(err, E_BUSY, "sandbox %s is just beginning or ending", instance->id);
	/* Somebody who has too many watches has to look again. */
	if (*watch < 0)
		until = MIN(until, now + AGAIN_USEC);
	r = sandbox_await_end(
		instance->base, instance->id, *watch, (int)((until - now) / USEC_PER_MSEC) + 1);
	if (*watch >= 0)
		fs_notify_clear(*watch);
	return r < 0 && r != -EWOULDBLOCK ? err_sys(err, -r, "wait for sandbox %s", instance->id)
					  : 0;
}

int instance_attach(const cloche_instance *instance, struct client **ret, struct cloche_err *err)
{
	_cleanup_fd_ int watch = -1;
	uint64_t until = 0;
	int r;

	for (;;) {
		_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;

		r = client_attach(instance->base, instance->id, ret, NULL);
		if (r != -E_NOT_FOUND)
			break;
		r = instance_open_entry(instance, &entry, err);
		if (r < 0)
			return r;
		if (entry.life == SANDBOX_ENDED || is_over(&entry))
			return instance_has_ended(&entry, err);
		/* A sandbox is locked before it listens, and stops listening while it ends. */
		if (until == 0)
			until = clock_mono_usec() + BEGINNING_USEC;
		r = await_change(instance, &entry, &watch, until, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? client_attach(instance->base, instance->id, ret, err) : 0;
}

/* --- the record --- */

static int take_record(
	cloche_instance *i, const struct sandbox_entry *entry, struct cloche_err *err)
{
	int r = read_record(entry, &i->record, err);

	if (r < 0)
		return r;
	/* A sandbox that has just been locked has no record yet. */
	if (!json_is_object(i->record)) {
		json_decref(i->record);
		i->record = json_object();
	}
	if (json_object_set_new(i->record, "id", json_string(i->id)) < 0)
		return err_nomem(err);
	if (i->life == SANDBOX_CRASHED &&
		json_object_set_new(i->record, "state", json_string("crashed")) < 0)
		return err_nomem(err);
	return 0;
}

/* The first command as one line: "npm run dev". NULL: out of memory. */
static char *describe_command(const json_t *meta)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(MAX_RECORD);
	const json_t *argv = json_object_get(meta, "argv");
	int r = 0;

	for (size_t k = 0; k < json_array_size(argv) && r == 0; k++) {
		struct str arg = json_str(json_array_get(argv, k));

		r = k ? buf_add_char(&line, ' ') : 0;
		if (r == 0)
			r = buf_add_str(&line, arg);
	}
	return r == -ENOMEM ? NULL : str_dup(buf_str(&line));
}

/* Add all commands to the document, and keep the first one for lists. */
static int read_commands(cloche_instance *i, int dir)
{
	_cleanup_(freep) uint32_t *numbers = NULL;
	_cleanup_json_ json_t *all = json_array();
	size_t n = 0;

	if (execs_list(dir, &numbers, &n) == -ENOMEM)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		_cleanup_fd_ int exec_dir = execs_open(dir, numbers[k], NULL);
		_cleanup_json_ json_t *meta = NULL;
		int r = exec_dir < 0 ? exec_dir : execs_read_meta(exec_dir, &meta, NULL);

		if (r == -E_NO_MEMORY)
			return -ENOMEM;
		if (meta && !i->command && !(i->command = describe_command(meta)))
			return -ENOMEM;
		if (meta && json_array_append(all, meta) < 0)
			return -ENOMEM;
	}
	/* A sandbox for one command keeps nothing about it. */
	if (!i->command)
		i->command = describe_command(json_object_get(i->record, "config"));
	return i->command && json_object_set(i->record, "commands", all) == 0 ? 0 : -ENOMEM;
}

int cloche_instance_refresh(cloche_instance *instance, cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_JSON);
	int r = instance_open_entry(instance, &entry, err);

	if (r < 0)
		return r;
	forget(instance);
	instance->life = entry.life;
	r = take_record(instance, &entry, err);
	if (r < 0)
		return r;
	/* It has just been locked by its maker, or has almost been removed. */
	if (entry.life == SANDBOX_LIVE && !json_object_get(instance->record, "state"))
		return err_set(
			err, E_NOT_FOUND, "sandbox %s is just beginning or ending", instance->id);
	if (read_commands(instance, entry.dir) < 0 ||
		json_text_write(&text, instance->record, 2) < 0)
		return err_nomem(err);
	instance->json = str_dup(buf_str(&text));
	tell(instance);
	return instance->json ? 0 : err_nomem(err);
}

int instance_copy_fresh(
	const cloche_instance *instance, cloche_instance **ret, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *copy = instance_copy(instance);
	int r = copy ? cloche_instance_refresh(copy, err)
		     : err_sys(err, errno, "copy the handle of a sandbox");

	if (r == 0)
		*ret = TAKE_PTR(copy);
	return r;
}

const char *cloche_instance_id(const cloche_instance *instance)
{
	return instance->id;
}

const cloche_instance_info *cloche_instance_info_of(const cloche_instance *instance)
{
	return &instance->info;
}

const char *cloche_instance_label(const cloche_instance *instance, const char *key)
{
	return json_string_value(json_object_get(json_object_get(instance->record, "labels"), key));
}

/* --- lists --- */

static int newest_first(const void *a, const void *b)
{
	const cloche_instance *x = *(cloche_instance *const *)a, *y = *(cloche_instance *const *)b;
	uint64_t s = x->info.created_us, t = y->info.created_us;

	return s == t ? strcmp(x->id, y->id) : s < t ? 1 : -1;
}

static bool is_wanted(const cloche_instance *i, bool all, instance_ended_fn ended, void *user)
{
	if (i->life != SANDBOX_LIVE)
		return all;
	if (!instance_end_orphan(i))
		return true;
	if (ended)
		ended(user, i->id);
	return false;
}

static int gather(int base, char *const *ids, bool all, instance_ended_fn ended, void *user,
	cloche_instance **found, size_t *ret_n, struct cloche_err *err)
{
	size_t n = 0;

	for (size_t k = 0; ids && ids[k]; k++) {
		cloche_instance *i = instance_alloc(base);
		int r;

		if (!i)
			return err_sys(err, errno, "copy the handle of a sandbox");
		memcpy(i->id, ids[k], sizeof(i->id));
		r = cloche_instance_refresh(i, err);
		if (r < 0 && r != -E_NOT_FOUND) {
			cloche_instance_free(i);
			return r;
		}
		/* Skip a sandbox that has gone meanwhile. */
		if (r == 0 && is_wanted(i, all, ended, user))
			found[n++] = i;
		else
			cloche_instance_free(i);
		*ret_n = n;
	}
	err_clear(err);
	return 0;
}

JOB_ASK1(call_instance_fn, cloche_instance_fn, bool, false, const cloche_instance *)

struct listing {
	cloche_instance_fn fn;
	void *user;
};

static bool list_one(const cloche_instance *instance, void *user)
{
	const struct listing *l = user;

	return call_instance_fn(l->fn, instance, l->user);
}

int cloche_instance_list(bool all, cloche_instance_fn fn, void *user, cloche_err *err)
{
	struct listing l = {fn, user};

	return instance_list(all, fn ? list_one : NULL, NULL, &l, err);
}

int instance_list(bool all, cloche_instance_fn fn, instance_ended_fn ended, void *user,
	struct cloche_err *err)
{
	_cleanup_(strv_freep) char **ids = NULL;
	_cleanup_fd_ int base = rundir_open(err);
	cloche_instance **found;
	size_t n = 0;
	int r;

	if (base < 0)
		return base;
	sandboxes_sweep(base, NULL, NULL);
	r = sandboxes_list(base, &ids, err);
	if (r < 0)
		return r;
	found = calloc(strv_count(ids) + 1, sizeof(cloche_instance *));
	if (!found)
		return err_nomem(err);
	r = gather(base, ids, all, ended, user, found, &n, err);
	qsort(found, n, sizeof(cloche_instance *), newest_first);
	for (size_t k = 0; k < n; k++) {
		if (r == 0 && fn && !fn(found[k], user))
			r = 1;
		cloche_instance_free(found[k]);
	}
	free(found);
	return r < 0 ? r : 0;
}
