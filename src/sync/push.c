/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: everything here is looked at, and, unless this is the first push, everything
 * there. What differs is decided by the table (sync/decide.h); then what is gone here is removed
 * there, and all that is to be sent goes in one archive, in which each file is hashed while it is
 * read. So a push costs one exchange for each directory there and each removal, and none for a
 * file. */
#include "files/tar.h"
#include "sync/internal.h"

#include <fcntl.h>
#include <unistd.h>

struct archive {
	struct sync *s;
	struct files_run run;
	struct cloche_err *err;
	char *chunk;
	size_t n;
	int r;     /* of the last files_send(), or a failure of ours */
	bool ours; /* the latter */
};

/* --- what is to be done --- */

/* What is here was sent. */
static void became_alike(struct sync_node *n)
{
	n->there = n->here;
	sync_alike(n);
	n->before.unsure_here |= n->unsteady;
}

/* Both have the same type, size and time, or are directories: then they are taken as alike. */
static int leave(struct sync *s, struct sync_node *n)
{
	const struct sync_facts *h = &n->here, *t = &n->there;
	bool alike = h->type == t->type && h->size == t->size && h->type != SYNC_ABSENT &&
		     (h->type == SYNC_DIRECTORY || sync_time_eq(h->mtime, t->mtime));
	int r = alike && h->type != SYNC_DIRECTORY ? here_digest(s, n) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	if (alike)
		sync_alike(n);
	else
		sync_tell(s, SYNC_LEFT, n->path, NULL);
	return 0;
}

static int decide_one(struct sync *s, struct sync_node *n)
{
	enum sync_side here;
	int r = here_side(s, n, &here);

	if (r < 0 || n->blind)
		return r;
	n->action = (uint8_t)sync_decide_push(here, there_side(n, false));
	if (n->action == SYNC_LEAVE)
		return leave(s, n);
	if (n->action == SYNC_FORGET)
		n->before.type = SYNC_ABSENT;
	/* What is deleted there is sent whole. */
	n->mode_only = n->mode_only && n->there.type != SYNC_ABSENT;
	return 0;
}

static int decide_all(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		if (!s->nodes[i]->blind)
			r = decide_one(s, s->nodes[i]);
		sync_pulse(s);
	}
	return r < 0 ? err_sys(err, -r, "compare the directory with its copy") : 0;
}

/* --- changes of names and modes there --- */

/* Do with one name there what can fail because of it alone. */
static int change_failed(struct sync *s, struct sync_node *n, int r, struct cloche_err *err)
{
	if (r == 0 || !sync_can_go_on(s, r))
		return r;
	err_clear(err);
	sync_tell(s, SYNC_LEFT, n->path, NULL);
	n->action = SYNC_DO_NOTHING;
	return 0;
}

static int change_mode(struct sync *s, struct sync_node *n, uint32_t mode, struct cloche_err *err)
{
	char path[PATH_MAX + 1];

	sync_there_path(s, n->path, path);
	sync_pulse(s);
	return change_failed(s, n, cloche_files_chmod(s->f, path, mode, err), err);
}

static struct sync_node *parent_node(const struct sync *s, const struct sync_node *n)
{
	struct str parent = sync_parent(n->path);

	return parent.n ? sync_state_find(s->state, parent) : NULL;
}

/* A directory there that its owner may not change is opened for what is changed in it. */
static int open_parent_there(struct sync *s, const struct sync_node *n, struct cloche_err *err)
{
	struct sync_node *dir = parent_node(s, n);
	uint8_t action;
	int r;

	if (!dir || dir->settle || dir->there.type != SYNC_DIRECTORY ||
		(dir->there.mode & 0700) == 0700)
		return 0;
	action = dir->action;
	r = change_mode(s, dir, dir->there.mode | 0700, err);
	dir->action = action;
	dir->settle = true;
	dir->settle_mode = dir->there.mode;
	return r;
}

static int remove_there(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	char path[PATH_MAX + 1];
	int r = open_parent_there(s, n, err);

	if (r < 0)
		return r;
	sync_there_path(s, n->path, path);
	r = cloche_files_remove(s->f, path, true, err);
	if (r == -E_NOT_FOUND) {
		err_clear(err);
		r = 0;
	}
	sync_pulse(s);
	return change_failed(s, n, r, err);
}

/* Whether nothing below the directory s->nodes[at] stays there. */
static bool all_goes(const struct sync *s, size_t at, size_t end)
{
	for (size_t i = at + 1; i < end; i++) {
		const struct sync_node *n = s->nodes[i];

		if (n->blind || (n->there.type != SYNC_ABSENT && n->action != SYNC_DELETE))
			return false;
	}
	return true;
}

/* Whether what is there has to go first: an archive replaces no directory, and makes none where
 * there is something else. */
static bool is_in_the_way(const struct sync_node *n)
{
	return n->action == SYNC_SEND && n->there.type != SYNC_ABSENT &&
	       n->there.type != n->here.type &&
	       (n->there.type == SYNC_DIRECTORY || n->here.type == SYNC_DIRECTORY);
}

static void forget(struct sync *s, size_t at, size_t end)
{
	for (size_t i = at; i < end; i++) {
		struct sync_node *n = s->nodes[i];

		s->report->removed += n->there.type != SYNC_ABSENT;
		if (i > at || n->action == SYNC_DELETE)
			n->before.type = SYNC_ABSENT;
		n->there = (struct sync_facts){0};
	}
}

/* Directories that go with all that is in them are removed by one request. */
static int remove_all(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		struct sync_node *n = s->nodes[i];
		bool way = is_in_the_way(n);
		size_t end;

		if (n->blind || (!way && n->action != SYNC_DELETE))
			continue;
		end = n->there.type == SYNC_DIRECTORY ? sync_end_of(s, i) : i + 1;
		if (!all_goes(s, i, end)) {
			if (way)
				r = change_failed(s, n, -E_EXISTS, err);
			continue;
		}
		r = remove_there(s, n, err);
		if (r == 0 && n->action != SYNC_DO_NOTHING) {
			forget(s, i, end);
			i = end - 1;
		}
	}
	return r;
}

static bool is_sent(const struct sync_node *n)
{
	return !n->blind && n->action == SYNC_SEND && !n->mode_only &&
	       !(n->here.type == SYNC_DIRECTORY && n->there.type == SYNC_DIRECTORY);
}

/* Whether something else stays there in place of a directory on the way to it. */
static bool is_barred(const struct sync *s, const struct sync_node *n)
{
	for (n = parent_node(s, n); n && n->there.type != SYNC_DIRECTORY; n = parent_node(s, n))
		if (n->there.type != SYNC_ABSENT && !is_sent(n))
			return true;
	return false;
}

/* What is sent has its directories there again, though they were deleted there; what is barred
 * stays here. */
static void send_parents(struct sync *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct sync_node *n = s->nodes[i], *dir;

		if (!is_sent(n))
			continue;
		if (is_barred(s, n)) {
			n->action = SYNC_DO_NOTHING;
			sync_tell(s, SYNC_LEFT, n->path, NULL);
			continue;
		}
		for (dir = parent_node(s, n); dir && dir->there.type == SYNC_ABSENT;
			dir = parent_node(s, dir)) {
			dir->action = SYNC_SEND;
			dir->mode_only = false;
		}
	}
}

static int open_parents(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++)
		if (is_sent(s->nodes[i]))
			r = open_parent_there(s, s->nodes[i], err);
	return r;
}

/* What differs by its mode, and directories that were opened. */
static int settle_modes(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = s->n; r == 0 && i > 0; i--) {
		struct sync_node *n = s->nodes[i - 1];
		bool changed = !n->blind && n->action == SYNC_SEND && !n->made && !is_sent(n) &&
			       n->there.type == n->here.type;

		if (changed)
			n->settle_mode = n->here.mode;
		if (!changed && !n->settle)
			continue;
		r = change_mode(s, n, n->settle_mode, err);
		if (r == 0 && changed && n->action == SYNC_SEND) {
			n->before.mode = n->here.mode;
			s->report->entries++;
		}
	}
	return r;
}

/* --- the archive. These functions return 0, or a->r if it cannot go on. --- */

static int archive_nomem(struct archive *a)
{
	a->ours = true;
	a->r = err_nomem(a->err);
	return a->r;
}

static int archive_flush(struct archive *a)
{
	if (a->n && a->r == 0)
		a->r = files_send(&a->run, str_make(a->chunk, a->n), a->err);
	a->n = 0;
	sync_pulse(a->s);
	return a->r;
}

static int archive_add(struct archive *a, struct str s)
{
	int r = 0;

	while (s.n && r == 0) {
		size_t n = MIN(s.n, FILES_CHUNK - a->n);

		memcpy(a->chunk + a->n, s.p, n);
		a->n += n;
		s = str_from_index(s, n);
		r = a->n == FILES_CHUNK ? archive_flush(a) : 0;
	}
	return r;
}

static int archive_head(struct archive *a, enum tar_type type, const struct sync_node *n,
	const struct sync_facts *facts, struct str link)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4 * TAR_MAX_EXTENDED);
	char path[PATH_MAX + 1];
	struct tar_entry entry = {.type = type,
		.link = link,
		.mode = type == TAR_SYMLINK ? 0777 : facts->mode,
		.size = type == TAR_FILE ? facts->size : 0,
		.mtime_sec = facts->mtime.sec,
		.mtime_nsec = facts->mtime.nsec};

	sync_there_path(a->s, n->path, path);
	entry.path = str_from(path + 1);
	if (tar_write_entry(&b, &entry) < 0)
		return archive_nomem(a);
	a->s->report->entries++;
	return archive_add(a, buf_str(&b));
}

/* Send exactly size bytes. What the file lacks is filled up; *ret_cut says so. */
static int archive_data(struct archive *a, int fd, uint64_t size, struct sha256 *h, bool *ret_cut)
{
	static const char zero[TAR_BLOCK];
	int r = 0;

	for (uint64_t left = size; left > 0 && r == 0;) {
		size_t n = (size_t)MIN(left, (uint64_t)(FILES_CHUNK - a->n));
		ssize_t got = *ret_cut ? 0 : read(fd, a->chunk + a->n, n);

		if (got <= 0) {
			*ret_cut = true;
			memset(a->chunk + a->n, 0, n);
			got = (ssize_t)n;
		}
		sha256_add(h, str_make(a->chunk + a->n, (size_t)got));
		a->n += (size_t)got;
		a->s->report->bytes += (uint64_t)got;
		left -= (uint64_t)got;
		r = a->n == FILES_CHUNK ? archive_flush(a) : 0;
	}
	return r == 0 ? archive_add(a, str_make(zero, (size_t)(-size % TAR_BLOCK))) : r;
}

/* What was sent is what both have, if the archive comes to its end. */
static void archive_sent(
	struct sync_node *n, const struct sync_facts *facts, struct sha256 *h, bool cut)
{
	n->here = *facts;
	n->unsteady = cut;
	n->made = true;
	if (h)
		sha256_bytes(h, n->digest);
}

/* Whether it is what the person has granted, if that is one file. */
static bool archive_is_granted(const struct sync *s, const struct stat *st)
{
	struct stat granted;

	return !s->o->one || (fstat(s->o->one_fd, &granted) == 0 && granted.st_dev == st->st_dev &&
				     granted.st_ino == st->st_ino);
}

/* Return 0, 1 if the archive cannot go on, or -errno of what is here. */
static int archive_file(struct archive *a, struct sync_node *n, int dir, const char *name)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct sync_facts facts, after;
	struct sha256 h;
	struct stat st;
	bool cut = false;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	facts = here_facts(&st);
	if (facts.type != SYNC_FILE || !archive_is_granted(a->s, &st))
		return -ESTALE;
	sha256_init(&h);
	if (archive_head(a, TAR_FILE, n, &facts, STR_NULL) != 0 ||
		archive_data(a, fd, facts.size, &h, &cut) != 0)
		return 1;
	if (fstat(fd, &st) < 0)
		return -errno;
	after = here_facts(&st);
	cut |= !sync_time_eq(after.mtime, facts.mtime) || after.size != facts.size;
	if (cut)
		sync_tell(a->s, SYNC_UNSTEADY, n->path, NULL);
	archive_sent(n, &facts, &h, cut);
	return 0;
}

static int archive_link(struct archive *a, struct sync_node *n, int dir, const char *name)
{
	char target[FILES_MAX_TARGET];
	ssize_t got = readlinkat(dir, name, target, sizeof(target));
	struct sync_facts facts = n->here;
	struct sha256 h;

	if (got <= 0)
		return got < 0 ? -errno : -ESTALE;
	facts.size = (uint64_t)got;
	if (archive_head(a, TAR_SYMLINK, n, &facts, str_make(target, (size_t)got)) != 0)
		return 1;
	sha256_init(&h);
	sha256_add(&h, str_make(target, (size_t)got));
	archive_sent(n, &facts, &h, false);
	return 0;
}

/* What cannot be read is told and left out. */
static int archive_node(struct archive *a, struct sync_node *n)
{
	const char *name;
	int dir, r;

	if (n->here.type == SYNC_DIRECTORY) {
		archive_sent(n, &n->here, NULL, false);
		return archive_head(a, TAR_DIRECTORY, n, &n->here, STR_NULL);
	}
	r = dir = here_open_parent(a->s, n->path, &name);
	if (dir >= 0)
		r = n->here.type == SYNC_LINK ? archive_link(a, n, dir, name)
					      : archive_file(a, n, dir, name);
	if (r < 0 && r != -ENOENT)
		sync_tell(a->s, r == -ESTALE ? SYNC_UNSTEADY : SYNC_UNREADABLE, n->path, NULL);
	return a->r;
}

static int archive_all(struct archive *a)
{
	_cleanup_(buf_donep) struct buf end = BUF_INIT(2 * TAR_BLOCK);
	struct sync *s = a->s;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++)
		if (is_sent(s->nodes[i]))
			r = archive_node(a, s->nodes[i]);
	if (r == 0 && tar_write_end(&end) < 0)
		r = archive_nomem(a);
	if (r == 0)
		r = archive_add(a, buf_str(&end));
	return r == 0 ? archive_flush(a) : r;
}

static int archive_run(struct archive *a)
{
	int r = archive_all(a);

	if (a->ours)
		files_give_up(&a->run);
	if (r < 0)
		return r;
	/* 1: the worker has ended it, and says why. */
	if (r == 0)
		r = files_send_end(&a->run, a->err);
	return r < 0 ? r : files_finish(&a->run, a->err);
}

static bool any_sent(const struct sync *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_sent(s->nodes[i]))
			return true;
	return false;
}

static int send_all(struct sync *s, struct cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_TAR_PUT, .path = STR("/")};
	_cleanup_(freep) char *chunk = malloc(FILES_CHUNK);
	struct archive a = {.s = s,
		.run = {.f = s->f, .verb = "copy to", .path = "/"},
		.err = err,
		.chunk = chunk};
	int r;

	if (!chunk)
		return err_nomem(err);
	if (!any_sent(s))
		return 0;
	r = files_begin(&a.run, &q, err);
	if (r == 0)
		r = archive_run(&a);
	for (size_t i = 0; r == 0 && i < s->n; i++)
		if (s->nodes[i]->made)
			became_alike(s->nodes[i]);
	return r;
}

/* --- the push --- */

static int push_save(const struct sync *s, struct cloche_err *err)
{
	return s->o->save ? s->o->save(s->o->user, s->state, err) : 0;
}

/* The copy of a first push that broke off is ours, and nobody has worked with it. */
static int push_look(struct sync *s, struct cloche_err *err)
{
	bool fresh = s->state->phase == SYNC_FRESH;
	int r;

	if (s->state->phase == SYNC_WHOLE)
		return there_scan(s, err);
	r = there_clear(s, fresh, err);
	if (r < 0 || !fresh)
		return r;
	s->state->phase = SYNC_BEGUN;
	return push_save(s, err);
}

static int push_change(struct sync *s, struct cloche_err *err)
{
	int r = remove_all(s, err), settled;

	send_parents(s);
	if (r == 0)
		r = open_parents(s, err);
	if (r == 0)
		r = send_all(s, err);
	if (s->f->broken)
		return r;
	settled = settle_modes(s, r < 0 ? NULL : err);
	return r < 0 ? r : settled;
}

/* Whether the one file is there: what has been told of it is why it is not. */
static bool push_has_sent(const struct sync *s)
{
	return s->n == 1 && s->nodes[0]->before.type == SYNC_FILE;
}

int sync_push(cloche_files *f, int dir, const struct sync_options *o, struct sync_state *state,
	struct sync_report *report, struct cloche_err *err)
{
	struct sync s;
	int r;

	if (o->what == SYNC_NONE)
		return 0;
	sync_begin(&s, f, dir, o, state, report);
	r = here_scan(&s, err);
	if (r == 0)
		r = push_look(&s, err);
	if (r == 0)
		r = sync_sort(&s, err);
	if (r == 0)
		r = decide_all(&s, err);
	if (r == 0)
		r = push_change(&s, err);
	if (r == 0 && o->one && !push_has_sent(&s))
		r = err_set(err, E_SYSTEM, "%s was not copied", o->one);
	if (r == 0)
		state->phase = SYNC_WHOLE;
	sync_end(&s);
	return r;
}
