/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the file has a head, which says where the records are and what their digest
 * is. They are written where the old ones are not, and only then is the head written, in one piece.
 * So a process that is killed leaves the old state or the new one, though it cannot make another
 * file. The file is at most twice as long as it would have to be. */
#include "sync/state.h"
#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

#define MAGIC "cloche-sync 1\n\0"
enum {
	MAGIC_BYTES = 16,
	HEAD_BYTES = 128,
	/* A record may be at most a path and what is known of it. */
	RECORDS_MAX = 1024 * 1024 * 1024,
};

void sync_state_done(struct sync_state *s)
{
	struct sync_node *n, *next;

	HASH_ITER (hh, s->nodes, n, next) {
		HASH_DEL(s->nodes, n);
		ignore_free(n->rules);
		free(n->to);
		free(n);
	}
	*s = (struct sync_state){0};
}

struct sync_node *sync_state_find(const struct sync_state *s, struct str path)
{
	struct sync_node *n = NULL;

	HASH_FIND(hh, s->nodes, path.p, path.n, n);
	return n;
}

struct sync_node *sync_state_add(struct sync_state *s, struct str path)
{
	struct sync_node *n = sync_state_find(s, path);

	if (n || path.n >= PATH_MAX || s->paths + path.n > SYNC_MAX_PATHS)
		return n;
	n = calloc(1, sizeof(*n) + path.n + 1);
	if (!n)
		return NULL;
	memcpy(n->path, path.p, path.n);
	HASH_ADD_KEYPTR(hh, s->nodes, n->path, path.n, n);
	if (!n->hh.tbl) {
		free(n);
		return NULL;
	}
	s->paths += path.n;
	return n;
}

/* A slash comes before every other byte, so that a directory is right before what is in it. */
static unsigned state_rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned)(unsigned char)c + 1;
}

static int state_by_path(const void *a, const void *b)
{
	const char *p = (*(struct sync_node *const *)a)->path;
	const char *q = (*(struct sync_node *const *)b)->path;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	return (state_rank(*p) > state_rank(*q)) - (state_rank(*p) < state_rank(*q));
}

struct sync_node **sync_state_sorted(const struct sync_state *s)
{
	size_t n = 0;
	struct sync_node **v = calloc(HASH_COUNT(s->nodes) + 1, sizeof(struct sync_node *));

	if (!v)
		return NULL;
	for (struct sync_node *node = s->nodes; node; node = node->hh.next)
		v[n++] = node;
	qsort(v, n, sizeof(*v), state_by_path);
	return v;
}

void sync_state_settle(struct sync_state *s)
{
	struct sync_node *n, *next;

	HASH_ITER (hh, s->nodes, n, next) {
		ignore_free(n->rules);
		free(n->to);
		if (n->before.type == SYNC_ABSENT) {
			HASH_DEL(s->nodes, n);
			s->paths -= strlen(n->path);
			free(n);
			continue;
		}
		n->rules = NULL;
		n->to = NULL;
		n->here = n->there = (struct sync_facts){0};
		n->hashed = n->blind = n->mode_only = n->settle = n->opened = n->made =
			n->unsteady = false;
		n->action = 0;
	}
}

bool sync_path_is_clean(struct str path)
{
	if (path.n == 0 || path.n >= PATH_MAX || path.p[path.n - 1] == '/' ||
		str_chr(path, '\0') < path.n)
		return false;
	while (path.n) {
		struct str name = str_next(&path, '/');

		if (name.n == 0 || name.n > NAME_MAX || str_eq(name, STR(".")) ||
			str_eq(name, STR("..")))
			return false;
	}
	return true;
}

/* --- the file --- */

static bool record_allows(const void *m)
{
	const struct sync_record *r = m;

	return r->type != SYNC_ABSENT && sync_path_is_clean(r->path);
}

MESSAGE_TABLE(sync_record, SYNC_RECORD_FIELDS, record_allows);

struct state_head {
	uint64_t phase, at, n;
	uint8_t digest[SHA256_BYTES];
};

static void state_digest(struct str s, uint8_t ret[SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, s);
	sha256_bytes(&h, ret);
}

static int state_bad(struct cloche_err *err)
{
	return err_set(err, E_CORRUPT, "the state of the copy is damaged, or of another version");
}

static int state_pread(int fd, uint64_t at, char *p, size_t n, struct cloche_err *err)
{
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, errno, "read the state of the copy");
		if (got == 0)
			return state_bad(err);
		p += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int state_pwrite(int fd, uint64_t at, struct str s, struct cloche_err *err)
{
	while (s.n > 0) {
		ssize_t n = pwrite(fd, s.p, s.n, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "write the state of the copy");
		at += (uint64_t)n;
		s = str_from_index(s, (size_t)n);
	}
	return 0;
}

/* Return 0, 1 if the file is empty, or a negative code. */
static int state_read_head(int fd, struct state_head *ret, struct cloche_err *err)
{
	char bytes[HEAD_BYTES];
	struct wire_in in = wire_in(str_make(bytes + MAGIC_BYTES, HEAD_BYTES - MAGIC_BYTES));
	off_t size = lseek(fd, 0, SEEK_END);
	int r;

	if (size < 0)
		return err_sys(err, errno, "read the state of the copy");
	if (size == 0)
		return 1;
	r = state_pread(fd, 0, bytes, sizeof(bytes), err);
	if (r < 0)
		return r;
	ret->phase = wire_get_int(&in, 8);
	ret->at = wire_get_int(&in, 8);
	ret->n = wire_get_int(&in, 8);
	memcpy(ret->digest, in.rest.p, SHA256_BYTES);
	if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0 || ret->phase >= SYNC_PHASE_END_ ||
		ret->at < HEAD_BYTES || ret->n > RECORDS_MAX || ret->at > (uint64_t)size ||
		ret->n > (uint64_t)size - ret->at)
		return state_bad(err);
	return 0;
}

static int state_take(struct sync_state *s, const struct sync_record *m, struct cloche_err *err)
{
	struct sync_node *n = sync_state_add(s, m->path);

	if (!n)
		return err_nomem(err);
	if (n->before.type != SYNC_ABSENT)
		return state_bad(err);
	n->before = (struct sync_before){.type = m->type,
		.unsure_here = m->unsure_here,
		.unsure_there = m->unsure_there,
		.mode = m->mode,
		.size = m->size,
		.here = {m->here_sec, m->here_nsec},
		.there = {m->there_sec, m->there_nsec}};
	memcpy(n->before.digest, m->digest, SHA256_BYTES);
	return 0;
}

static int state_take_all(struct sync_state *s, struct str records, struct cloche_err *err)
{
	struct wire_in in = wire_in(records);
	int r = 0;

	while (r == 0 && in.rest.n > 0) {
		struct sync_record m;

		r = message_take(&in, sync_record_message(), &m) ? state_take(s, &m, err)
								 : state_bad(err);
	}
	return r;
}

int sync_state_read(int fd, struct sync_state *ret, struct cloche_err *err)
{
	_cleanup_(sync_state_donep) struct sync_state s = {0};
	_cleanup_(freep) char *records = NULL;
	uint8_t digest[SHA256_BYTES];
	struct state_head head;
	int r = state_read_head(fd, &head, err);

	if (r < 0)
		return r;
	if (r == 1) {
		*ret = (struct sync_state){0};
		return 0;
	}
	records = malloc(head.n + 1);
	if (!records)
		return err_nomem(err);
	r = state_pread(fd, head.at, records, head.n, err);
	if (r < 0)
		return r;
	state_digest(str_make(records, head.n), digest);
	if (memcmp(digest, head.digest, SHA256_BYTES) != 0)
		return state_bad(err);
	s.phase = (enum sync_phase)head.phase;
	r = state_take_all(&s, str_make(records, head.n), err);
	if (r == 0) {
		*ret = s;
		s = (struct sync_state){0};
	}
	return r;
}

static int state_put_all(const struct sync_state *s, struct buf *ret, struct cloche_err *err)
{
	struct wire_out out = wire_out(ret);

	for (const struct sync_node *n = s->nodes; n; n = n->hh.next) {
		const struct sync_before *b = &n->before;
		struct sync_record m = {.type = b->type,
			.unsure_here = b->unsure_here,
			.unsure_there = b->unsure_there,
			.mode = b->mode,
			.here_nsec = b->here.nsec,
			.there_nsec = b->there.nsec,
			.here_sec = b->here.sec,
			.there_sec = b->there.sec,
			.size = b->size,
			.path = str_from(n->path)};

		if (b->type == SYNC_ABSENT)
			continue;
		memcpy(m.digest, b->digest, SHA256_BYTES);
		message_put(&out, sync_record_message(), &m);
	}
	if (out.error == -ENOMEM)
		return err_nomem(err);
	return out.error ? err_set(err, E_LIMIT, "the state of the copy would be too large") : 0;
}

static int state_write_head(int fd, const struct state_head *head, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(HEAD_BYTES);
	struct wire_out out = wire_out(&b);
	static const char zero[HEAD_BYTES];
	int r = buf_add(&b, MAGIC, MAGIC_BYTES);

	wire_put_int(&out, head->phase, 8);
	wire_put_int(&out, head->at, 8);
	wire_put_int(&out, head->n, 8);
	if (r == 0 && out.error == 0)
		r = buf_add(&b, head->digest, SHA256_BYTES);
	if (r == 0)
		r = buf_add(&b, zero, buf_room(&b));
	return r < 0 || out.error ? err_nomem(err) : state_pwrite(fd, 0, buf_str(&b), err);
}

int sync_state_write(int fd, const struct sync_state *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf records = BUF_INIT(RECORDS_MAX);
	struct state_head old = {.at = HEAD_BYTES}, head = {.phase = s->phase, .at = HEAD_BYTES};
	int r = state_read_head(fd, &old, err);

	if (r >= 0)
		r = state_put_all(s, &records, err);
	if (r < 0)
		return r;
	head.n = buf_len(&records);
	if (old.n > 0 && HEAD_BYTES + head.n > old.at)
		head.at = old.at + old.n;
	state_digest(buf_str(&records), head.digest);
	r = state_pwrite(fd, head.at, buf_str(&records), err);
	/* A power cut must not leave the new head without what it is about. */
	if (r == 0 && fdatasync(fd) < 0)
		r = err_sys(err, errno, "write the state of the copy");
	if (r == 0)
		r = state_write_head(fd, &head, err);
	if (r == 0 && ftruncate(fd, (off_t)(head.at + head.n)) < 0)
		r = err_sys(err, errno, "write the state of the copy");
	return r;
}
