/* SPDX-License-Identifier: Apache-2.0 */
#include "session/store.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "base/utf8.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "jail/source.h"
#include "session/document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Theory of operation (INV-CRASH-SAFE)
 *
 * context.json is replaced atomically as a whole, twice a run: when a reply begins (with the
 * request and the place of its events in events.jsonl) and when it is finished. In between only
 * events.jsonl grows, so a run costs the same however long it is. After a crash the reply still
 * points to its events, which show what the agent had reported until then.
 *
 * A file may be read if it is twice as large as the limit for writing: limits may shrink between
 * versions, and no session should be lost to that. */

enum { ID_MAX = 256, JSON_INDENT = 2 };

/* A file that cannot be read, and the name under which it will be kept. */
struct damage {
	const char *file;
	char kept[64];
};

struct cloche_session {
	char *dir;
	int fd; /* the directory; locked if writable */
	bool writable;
	bool unwritten; /* it is new, or its name is, and not on disk yet */
	json_t *doc;
	json_t *pending; /* the unfinished reply, borrowed from doc; NULL: none */
	struct session_events events;
	struct damage damaged[2]; /* not set aside yet */
	unsigned damaged_n;
	char *damage, *warning; /* about the last of them */
	struct buf json;        /* of cloche_session_json() */
	cloche_session_info *info;
};

static int check_writable(const cloche_session *s, struct cloche_err *err)
{
	return s->writable ? 0 : err_set(err, E_DENIED, "%s was opened for reading only", s->dir);
}

/* Keep damaged files under other names, before they are replaced. */
static int set_aside(cloche_session *s, struct cloche_err *err)
{
	for (; s->damaged_n > 0; s->damaged_n--) {
		const struct damage *d = &s->damaged[s->damaged_n - 1];

		if (renameat(s->fd, d->file, s->fd, d->kept) < 0)
			return err_sys(err, errno, "rename %s", d->file);
	}
	return 0;
}

static int save(cloche_session *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SESSION_FILE_MAX);
	int r = document_write(s->doc, &text, err);

	if (r == 0)
		r = set_aside(s, err);
	if (r == 0)
		r = fs_write_atomic(s->fd, SESSION_FILE, buf_str(&text), 0600, true, err);
	if (r < 0)
		err_wrap(err, r, "session %s", s->dir);
	else
		s->unwritten = false;
	return r;
}

/* Remember that a file is damaged; its new name has the current time. */
static int note_damage(
	cloche_session *s, const char *file, const struct cloche_err *why, struct cloche_err *err)
{
	struct damage *d = &s->damaged[s->damaged_n++];
	char now[CLOCK_ISO_MAX];

	clock_format_utc(clock_real_usec(), now);
	d->file = file;
	snprintf(d->kept, sizeof(d->kept), "%s.damaged-%s", file, now);
	free(TAKE_PTR(s->damage));
	free(TAKE_PTR(s->warning));
	if (asprintf(&s->damage, "%s/%s is damaged (%s)", s->dir, file, why->message) < 0) {
		s->damage = NULL;
		return err_nomem(err);
	}
	if (asprintf(&s->warning, "%s; it was kept as %s and a new one begun", s->damage, d->kept) <
		0) {
		s->warning = NULL;
		return err_nomem(err);
	}
	return 0;
}

/* Return 0 with the document, 1 if there is no such file, -E_CORRUPT, or another error. */
static int load_file(cloche_session *s, const char *file, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT((size_t)2 * SESSION_FILE_MAX);
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = fd_read_file(s->fd, file, &text, &why);

	if (r < 0 && why.sys_errno == ENOENT)
		return 1;
	if (r == 0)
		r = document_parse(buf_str(&text), &s->doc, &why);
	if (r == -E_CORRUPT && s->writable) {
		r = note_damage(s, file, &why, err);
		return r < 0 ? r : 1;
	}
	if (r < 0)
		return err_set(err, why.code, "%s/%s: %s", s->dir, file, why.message);
	return 0;
}

/* Complete the unfinished replies that a crash left. */
static int recover(cloche_session *s, struct cloche_err *err)
{
	bool found = false;
	json_t *reply;
	size_t i;
	int r = 0;

	json_array_foreach (document_replies(s->doc), i, reply) {
		_cleanup_json_ json_t *events = json_array();
		json_int_t offset = json_integer_value(json_object_get(reply, REPLY_PENDING));

		if (!reply_is_pending(reply))
			continue;
		if (!events)
			return err_nomem(err);
		r = session_events_reply_at(
			s->fd, (uint64_t)MAX(offset, (json_int_t)0), events, err);
		if (r == 0)
			r = reply_rebuild(reply, events, err);
		if (r < 0)
			return r;
		found = true;
	}
	return found && s->writable ? save(s, err) : 0;
}

static cloche_session *session_new(const char *dir)
{
	cloche_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = -1;
	s->events = SESSION_EVENTS_INIT;
	s->json = BUF_INIT(SESSION_FILE_MAX);
	s->dir = strdup(dir);
	s->info = calloc(1, sizeof(*s->info));
	if (s->dir && s->info)
		return s;
	cloche_session_free(s);
	return NULL;
}

void cloche_session_free(cloche_session *s)
{
	if (!s)
		return;
	session_events_end(&s->events);
	json_decref(s->doc);
	fd_close(s->fd);
	buf_done(&s->json);
	free(s->info);
	free(s->damage);
	free(s->warning);
	free(s->dir);
	free(s);
}

/* Remove half-written files of a crash. While we hold the lock, no other process writes here. */
static void remove_leftovers(cloche_session *s)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(s->fd, ".");
	const struct dirent *e;

	while (list && (e = fs_list_next(list))) {
		struct str name = str_from(e->d_name);

		if (str_starts(name, STR(SESSION_FILE ".")) && str_ends(name, STR(".tmp")))
			unlinkat(s->fd, e->d_name, 0);
	}
}

static int load(cloche_session *s, struct cloche_err *err)
{
	int r = load_file(s, SESSION_FILE, err);

	if (r > 0)
		r = load_file(s, SESSION_FILE_OLD, err);
	return r == 0 ? recover(s, err) : r;
}

static int check_id(const char *id, struct cloche_err *err)
{
	struct str s = str_from(id);

	if (s.n == 0 || s.n > ID_MAX || !utf8_is_valid(s))
		return err_set(err, E_USAGE, "a context id has 1 to %d bytes of UTF-8", ID_MAX);
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return err_set(err, E_USAGE, "a context id has no control characters");
	return 0;
}

static int begin_new(cloche_session *s, const char *context_id, struct cloche_err *err)
{
	char made[] = "ctx-0123456789abcdef";

	s->unwritten = true;
	rand_id(made + 4, sizeof(made) - 5);
	return document_new(context_id ? context_id : made, &s->doc, err);
}

/* Check that the context has this name, or give it to one that has none. */
static int check_name(cloche_session *s, const char *context_id, struct cloche_err *err)
{
	const char *own = json_string_value(json_object_get(s->doc, "execution_context_id"));

	if (strcmp(context_id, own) == 0)
		return 0;
	if (own[0])
		return err_set(err, E_USAGE, "%s is the context \"%s\", not \"%s\"", s->dir, own,
			context_id);
	if (json_object_set_new(s->doc, "execution_context_id", json_string(context_id)) < 0)
		return err_nomem(err);
	s->unwritten = true;
	return 0;
}

static int lock(cloche_session *s, struct cloche_err *err)
{
	if (flock(s->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_sys(err, errno, "lock %s", s->dir);
	err_set(err, E_BUSY, "another agent is using the context %s", s->dir);
	err_hint(err, "wait for it to end, stop it, or use another --context");
	return -E_BUSY;
}

/* Judge the context by a file in it: it may be a directory around a place of credentials. */
static int judge_dir(const struct hostpath *at, const char *rest, const char *dir, const char *home,
	struct cloche_err *err)
{
	_cleanup_(freep) char *asked = fs_absolute(dir), *real = hostpath_real(at);
	_cleanup_(freep) char *whole = real ? fs_join(real, rest) : NULL;
	_cleanup_(freep) char *file = whole ? fs_join(whole, SESSION_FILE) : NULL;
	_cleanup_(freep) char *named = asked ? fs_join(asked, SESSION_FILE) : NULL;
	int r;

	if (!file || !named)
		return err_sys(err, errno, "context %s", dir);
	r = source_judge_named(named, file, home, err);
	return r < 0 ? err_wrap(err, r, "context") : 0;
}

/* Make the directory if it is missing, and open it, through nothing that a room may have put in its
 * place or on the way to it (INV-INSIDE-PATHS). */
static int open_dir(const char *dir, struct cloche_err *err)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(freep) char *home = fs_home(), *rest = NULL;
	_cleanup_fd_ int fd = -1;
	int r = hostpath_find_missing(dir, home, "context", &at, &rest, err);

	if (r == 0)
		r = judge_dir(&at, rest, dir, home, err);
	if (r < 0)
		return r;
	fd = hostpath_make(&at, rest, 0700);
	if (fd < 0)
		return err_sys(err, -fd, "open %s", dir);
	r = fs_check_private(fd, dir, err);
	return r < 0 ? r : TAKE_FD(fd);
}

int session_open_unwritten(
	const char *dir, const char *context_id, cloche_session **ret, struct cloche_err *err)
{
	_cleanup_(cloche_session_freep) cloche_session *s = session_new(dir);
	int r = context_id ? check_id(context_id, err) : 0;

	if (r < 0)
		return r;
	if (!s)
		return err_nomem(err);
	s->fd = open_dir(dir, err);
	if (s->fd < 0)
		return s->fd; /* it is negative, so freeing does not close it */
	s->writable = true;
	r = lock(s, err);
	if (r == 0) {
		remove_leftovers(s);
		r = load(s, err);
	}
	if (r > 0)
		r = begin_new(s, context_id, err);
	if (r == 0 && context_id)
		r = check_name(s, context_id, err);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

int cloche_session_open(
	const char *dir, const char *context_id, cloche_session **ret, struct cloche_err *err)
{
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	int r = session_open_unwritten(dir, context_id, &s, err);

	if (r == 0 && (s->unwritten || s->damaged_n > 0))
		r = save(s, err);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

int cloche_session_load(const char *dir, cloche_session **ret, struct cloche_err *err)
{
	_cleanup_(cloche_session_freep) cloche_session *s = session_new(dir);
	int r;

	if (!s)
		return err_nomem(err);
	s->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0 && errno != ENOENT)
		return err_sys(err, errno, "open %s", dir);
	r = s->fd < 0 ? 1 : load(s, err);
	if (r > 0)
		return err_set(err, E_NOT_FOUND, "%s holds no session", dir);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

int session_dir_fd(const cloche_session *s)
{
	return s->fd;
}

const char *session_dir(const cloche_session *s)
{
	return s->dir;
}

static size_t session_replies(const cloche_session *s)
{
	return json_array_size(document_replies(s->doc));
}

const json_t *session_reply(const cloche_session *s, size_t index)
{
	return json_array_get(document_replies(s->doc), index);
}

const char *cloche_session_json(cloche_session *s)
{
	buf_clear(&s->json);
	return json_text_write(&s->json, s->doc, JSON_INDENT) < 0 ? NULL : buf_cstr(&s->json);
}

const char *session_damage(const cloche_session *s)
{
	return s->damage;
}

static const char *session_id_for_resume(const cloche_session *s)
{
	for (size_t i = session_replies(s); i > 0; i--) {
		const json_t *reply = session_reply(s, i - 1);
		struct str id = reply_session_id(reply);

		if (id.n > 0 && !reply_lost_session(reply))
			return id.p; /* a jansson string, so terminated */
	}
	return NULL;
}

static const char *session_last_response(const cloche_session *s)
{
	for (size_t i = session_replies(s); i > 0; i--) {
		const json_t *reply = session_reply(s, i - 1);
		struct str text = json_str_at(reply, "response_text");

		if (json_is_false(json_object_get(reply, "is_error")) && text.n > 0)
			return text.p;
	}
	return NULL;
}

const cloche_session_info *cloche_session_info_of(const cloche_session *s)
{
	const char *model = json_string_value(json_object_get(s->doc, "model"));

	*s->info = (cloche_session_info){
		.size = sizeof(*s->info),
		.context_id = json_string_value(json_object_get(s->doc, "execution_context_id")),
		.model = model && model[0] ? model : NULL,
		.id_for_resume = session_id_for_resume(s),
		.last_successful_response = session_last_response(s),
		.reply_count = session_replies(s),
		.warning = s->warning,
	};
	return s->info;
}

int cloche_session_set_model(cloche_session *s, const char *model, struct cloche_err *err)
{
	int r = check_writable(s, err);

	if (r < 0)
		return r;
	if (!model || !model[0])
		json_object_del(s->doc, "model");
	else if (!utf8_is_valid(str_from(model)))
		return err_set(err, E_USAGE, "a model's name is UTF-8");
	else if (json_object_set_new(s->doc, "model", json_string(model)) < 0)
		return err_nomem(err);
	return save(s, err);
}

int session_begin_reply(cloche_session *s, const char *request_text, struct cloche_err *err)
{
	_cleanup_json_ json_t *reply = NULL;
	int r = check_writable(s, err);

	if (r < 0)
		return r;
	if (s->pending)
		return err_set(err, E_BUSY, "a reply is under way in %s", s->dir);
	r = session_events_begin(&s->events, s->fd, err);
	if (r == 0)
		r = reply_pending_new(request_text, s->events.offset, &reply, err);
	if (r == 0 && json_array_append(document_replies(s->doc), reply) < 0)
		r = err_nomem(err);
	if (r < 0)
		return r;
	r = save(s, err);
	if (r < 0) {
		/* Nobody will finish it. */
		session_events_end(&s->events);
		json_array_remove(document_replies(s->doc), session_replies(s) - 1);
		return r;
	}
	s->pending = reply;
	return 0;
}

int session_add_event(cloche_session *s, const struct agent_event *e, struct cloche_err *err)
{
	if (!s->pending)
		return err_set(err, E_INTERNAL, "no reply is under way");
	return session_events_append(&s->events, e->raw, err);
}

int session_finish_reply(
	cloche_session *s, const struct session_reply *reply, struct cloche_err *err)
{
	int r;

	if (!s->pending)
		return err_set(err, E_INTERNAL, "no reply is under way");
	r = reply_set(s->pending, reply, err);
	if (r < 0)
		return r;
	s->pending = NULL;
	session_events_end(&s->events);
	return save(s, err);
}

int session_update_or_add_reply(
	cloche_session *s, const struct session_reply *reply, struct cloche_err *err)
{
	size_t n = session_replies(s);
	json_t *last = n ? json_array_get(document_replies(s->doc), n - 1) : NULL;
	const json_t *asked = json_object_get(last, "request_text");
	_cleanup_json_ json_t *added = NULL;
	int r = check_writable(s, err);
	bool same;

	if (r < 0)
		return r;
	if (json_is_string(asked))
		same = reply->request_text &&
		       str_eq(json_str(asked), str_from(reply->request_text));
	else
		same = last && !reply->request_text;
	if (same) {
		r = reply_set(last, reply, err);
	} else {
		r = reply_new(reply, &added, err);
		if (r == 0 && json_array_append(document_replies(s->doc), added) < 0)
			r = err_nomem(err);
	}
	return r < 0 ? r : save(s, err);
}
