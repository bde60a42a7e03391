/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a directory that is new there may have many thousands of files, and an
 * exchange for each would take as many round trips. So they come as one archive. The list decides
 * what is taken all the same: of an archive only those files are taken that are in the list, with
 * the size that it says, and only as many bytes are read as all of these need. Whatever else
 * happens with it, what has not come by its end is read one by one. */
#include "files/beneath.h"
#include "files/tar.h"
#include "sync/take.h"

#include <fcntl.h>

enum { ENTRY_BYTES = 3 * PATH_MAX, MORE_BYTES = 1024 * 1024 };

struct takes {
	struct sync *s;
	const char *in;
	struct tar_reader *reader;
	struct buf path;
	struct taking t;
	bool taking; /* t is the current entry */
	uint64_t left;
	int code; /* of a failure here: the pull ends */
	struct cloche_err *err;
};

static int takes_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct takes *a = user;
	struct buf whole = BUF_INIT(PATH_MAX);
	struct sync_node *n = NULL;

	if (entry->type != TAR_FILE || beneath_clean(entry->path, &a->path) < 0)
		return 0;
	if (buf_printf(&whole, "%s/", a->in) == 0 && buf_add_str(&whole, buf_str(&a->path)) == 0)
		n = sync_state_find(a->s->state, buf_str(&whole));
	buf_done(&whole);
	if (!n || n->blind || n->action != SYNC_TAKE || n->there.type != SYNC_FILE ||
		n->there.size != entry->size)
		return 0;
	n->there.mtime = (struct sync_time){entry->mtime_sec, entry->mtime_nsec};
	a->taking = true;
	a->code = taking_begin(&a->t, a->s, n, a->err);
	if (a->code == 0)
		a->code = taking_open(&a->t, a->err);
	return a->code < 0 ? files_fail(e, ECANCELED, STR_NULL, NULL) : 0;
}

static int takes_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct takes *a = user;

	if (!a->taking || taking_add(&a->t, p, n) == 0)
		return 0;
	a->code = taking_failed(&a->t, a->err);
	return files_fail(e, ECANCELED, STR_NULL, NULL);
}

static int takes_entry_end(void *user, struct files_error *e)
{
	struct takes *a = user;

	if (!a->taking)
		return 0;
	a->taking = false;
	a->code = taking_finish(&a->t, a->err);
	a->t.n->action = SYNC_DO_NOTHING;
	taking_done(&a->t);
	return a->code < 0 ? files_fail(e, ECANCELED, STR_NULL, NULL) : 0;
}

static int takes_piece(
	struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct takes *a = run->user;
	struct str data = frame->payload;
	struct files_error e = {0};

	if (frame->type != FILES_DATA || data.n == 0 || data.n > FILES_CHUNK)
		return files_malformed(run->f, err);
	sync_pulse(a->s);
	if (data.n > a->left)
		return err_set(err, E_LIMIT, "the archive is larger than what was listed");
	a->left -= data.n;
	if (tar_reader_feed(a->reader, data.p, data.n, &e) == 0)
		return 0;
	return a->code < 0 ? a->code : files_tell(err, "copy from", run->path, &e);
}

/* How many bytes an archive of the files in the list has at most. */
static uint64_t takes_bytes(const struct sync *s, size_t at, size_t end)
{
	uint64_t sum = MORE_BYTES;

	for (size_t i = at; i < end; i++)
		if (__builtin_add_overflow(sum, s->nodes[i]->there.size + ENTRY_BYTES, &sum))
			return UINT64_MAX;
	return sum;
}

int take_archive(struct sync *s, size_t at, size_t end, struct cloche_err *err)
{
	static const struct tar_reader_ops ops = {takes_entry, takes_data, takes_entry_end};
	char path[PATH_MAX + 1];
	struct files_request q = {.op = FILES_OP_TAR_GET, .flags = FILES_CONTENTS};
	struct takes a = {.s = s,
		.in = s->nodes[at]->path,
		.path = BUF_INIT(PATH_MAX),
		.left = takes_bytes(s, at, end),
		.err = err};
	struct files_run run = {
		.f = s->f, .verb = "copy from", .path = path, .answer = takes_piece, .user = &a};
	int r;

	sync_there_path(s, a.in, path);
	a.reader = tar_reader_new(&ops, &a);
	if (!a.reader)
		return err_nomem(err);
	q.path = str_from(path);
	r = files_do(&run, &q, err);
	if (a.taking)
		taking_done(&a.t);
	tar_reader_free(a.reader);
	buf_done(&a.path);
	if (a.code < 0)
		return a.code;
	if (r < 0 && !sync_can_go_on(s, r))
		return r;
	err_clear(err);
	return 0;
}
