/* SPDX-License-Identifier: Apache-2.0 */
/* One node after the other: a file by READ, a link by READLINK. A file that has another size than
 * the list said has changed meanwhile, or the worker lies: it is looked at and read again, a few
 * times, and then left for the next pull. */
#include "sync/take.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TAKE_TRIES = 3 };

static int take_data(void *user, const void *data, size_t n)
{
	return taking_add(user, data, n);
}

/* The worker says no to this one. */
static int take_refused(struct sync *s, struct sync_node *n, int r, struct cloche_err *err)
{
	if (!sync_can_go_on(s, r))
		return r;
	err_clear(err);
	sync_tell(s, r == -E_NOT_FOUND ? SYNC_UNSTEADY : SYNC_UNREADABLE, n->path, NULL);
	return 1;
}

/* Read the file once. Return 0, 1 if it is left out (told), 2 if it changed, or a negative code. */
static int take_read(struct taking *t, struct cloche_err *err)
{
	struct sync *s = t->s;
	struct sync_node *n = t->n;
	char path[PATH_MAX + 1];
	cloche_file_stat st;
	int r = taking_open(t, err);

	if (r < 0)
		return r;
	sync_there_path(s, n->path, path);
	r = cloche_files_read(s->f, path, 0, n->there.size + 1, take_data, t, err);
	if (t->error < 0)
		return taking_failed(t, err);
	if (r < 0)
		return take_refused(s, n, r, err);
	if (t->got == n->there.size)
		return 0;
	r = cloche_files_stat(s->f, path, false, &st, err);
	if (r < 0)
		return take_refused(s, n, r, err);
	if (st.type != CLOCHE_NODE_FILE || st.size > INT64_MAX)
		return 2;
	n->there.size = st.size;
	n->there.mode = st.mode & 0777;
	n->there.mtime = (struct sync_time){st.mtime_sec, st.mtime_nsec};
	return 2;
}

static int take_file(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	_cleanup_(taking_donep) struct taking t;
	int r = taking_begin(&t, s, n, err);

	if (r < 0)
		return r;
	r = 2;
	for (unsigned i = 0; i < TAKE_TRIES && r == 2; i++)
		r = take_read(&t, err);
	if (r == 2)
		sync_tell(s, SYNC_UNSTEADY, n->path, NULL);
	return r == 0 ? taking_finish(&t, err) : r < 0 ? r : 0;
}

static int take_link(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	_cleanup_(taking_donep) struct taking t = {.dir = -1, .file = REPLACE_NULL};
	_cleanup_(freep) char *target = NULL;
	char path[PATH_MAX + 1];
	int r;

	sync_there_path(s, n->path, path);
	sync_pulse(s);
	r = cloche_files_readlink(s->f, path, &target, err);
	if (r == 0 && !target[0])
		r = -E_SYSTEM;
	if (r < 0) {
		r = take_refused(s, n, r, err);
		return r < 0 ? r : 0;
	}
	n->there.size = strlen(target);
	r = taking_begin(&t, s, n, err);
	if (r < 0)
		return r;
	sha256_add(&t.h, str_from(target));
	t.file.dir = t.dir;
	replace_name(t.file.name);
	if (symlinkat(target, t.dir, t.file.name) < 0) {
		t.error = -errno;
		t.file.name[0] = '\0';
		return taking_failed(&t, err);
	}
	return taking_finish(&t, err);
}

int take_node(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	switch (n->there.type) {
	case SYNC_FILE:
		return take_file(s, n, err);
	case SYNC_DIRECTORY:
		return take_directory(s, n, err);
	case SYNC_LINK:
		return take_link(s, n, err);
	case SYNC_ABSENT:
	case SYNC_TYPE_END_:
	default:
		return 0;
	}
}
