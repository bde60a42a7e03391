/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names. */
#include "fileclient/session.h"
#include "job/job.h"

#include <string.h>

_Static_assert((int)CLOCHE_FILES_OVERFLOW == (int)FILES_OVERFLOW &&
		       FILES_OVERFLOW + 1 == FILES_CHANGE_END_,
	"the worker's changes are the public ones");

static const char *change_name(enum cloche_files_change change)
{
	static const char *const names[] = {"created", "modified", "written", "changed", "deleted",
		"moved-from", "moved-to", "gone", "overflow"};

	return (unsigned)change < ARRAY_SIZE(names) ? names[change] : "unknown";
}

/* Return false if the type is unknown. */
static bool fill_stat(cloche_file_stat *ret, const struct files_stat *m)
{
	static const struct {
		mode_t bits;
		enum cloche_node_type type;
		const char *name;
	} types[] = {{S_IFREG, CLOCHE_NODE_FILE, "file"},
		{S_IFDIR, CLOCHE_NODE_DIRECTORY, "directory"},
		{S_IFLNK, CLOCHE_NODE_SYMLINK, "symlink"}, {S_IFIFO, CLOCHE_NODE_FIFO, "fifo"},
		{S_IFSOCK, CLOCHE_NODE_SOCKET, "socket"},
		{S_IFCHR, CLOCHE_NODE_CHAR_DEVICE, "char-device"},
		{S_IFBLK, CLOCHE_NODE_BLOCK_DEVICE, "block-device"}};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if ((m->mode & S_IFMT) != types[i].bits)
			continue;
		*ret = (cloche_file_stat){.type = types[i].type,
			.type_name = types[i].name,
			.mode = m->mode & 07777,
			.uid = m->uid,
			.gid = m->gid,
			.size = m->size,
			.links = m->links,
			.device = m->device,
			.inode = m->inode,
			.mtime_sec = m->mtime_sec,
			.mtime_nsec = m->mtime_nsec};
		return true;
	}
	return false;
}

struct want_stat {
	cloche_file_stat *ret;
	bool has;
};

static int on_stat(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct want_stat *want = run->user;
	struct files_stat m;

	if (frame->type != FILES_STAT_IS || want->has || !files_get_stat(frame->payload, &m) ||
		!fill_stat(want->ret, &m))
		return files_malformed(run->f, err);
	want->has = true;
	return 0;
}

int cloche_files_stat(
	cloche_files *f, const char *path, bool follow, cloche_file_stat *ret, cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_STAT, .flags = follow ? FILES_FOLLOW : 0, .path = str_from(path)};
	cloche_file_stat st;
	struct want_stat want = {.ret = &st};
	struct files_run run = {
		.f = f, .verb = "look at", .path = path, .answer = on_stat, .user = &want};
	int r = files_do(&run, &q, err);

	if (r == 0 && !want.has)
		r = files_malformed(f, err);
	if (r == 0)
		*ret = st;
	return r;
}

struct lister {
	cloche_files_list_fn fn;
	void *user;
};

JOB_ASK2(call_list_fn, cloche_files_list_fn, bool, false, const char *, const cloche_file_stat *)

static int on_entries(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	const struct lister *l = run->user;
	struct wire_in r = wire_in(frame->payload);

	if (frame->type != FILES_ENTRIES || r.rest.n == 0)
		return files_malformed(run->f, err);
	while (r.rest.n) {
		char name[FILES_MAX_NAME + 1];
		cloche_file_stat st;
		struct files_entry m;

		if (!message_take(&r, files_entry_message(), &m) || !fill_stat(&st, &m.stat))
			return files_malformed(run->f, err);
		memcpy(name, m.name.p, m.name.n);
		name[m.name.n] = '\0';
		if (!call_list_fn(l->fn, name, &st, l->user))
			return 1;
	}
	return 0;
}

/* Do a request about a name that, in a lenient session, need not exist. */
static int do_lenient(struct files_run *run, const struct files_request *q, struct cloche_err *err)
{
	int r = files_do(run, q, err);

	if (r != -E_NOT_FOUND || !run->f->lenient)
		return r;
	err_clear(err);
	return 0;
}

int cloche_files_list(
	cloche_files *f, const char *path, cloche_files_list_fn fn, void *user, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_LIST, .path = str_from(path)};
	struct lister l = {.fn = fn, .user = user};
	struct files_run run = {
		.f = f, .verb = "list", .path = path, .answer = on_entries, .user = &l};

	return do_lenient(&run, &q, err);
}

static int on_target(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	char **ret = run->user;
	struct files_target m;

	if (frame->type != FILES_TARGET || *ret || !files_get_target(frame->payload, &m))
		return files_malformed(run->f, err);
	*ret = str_dup(m.target);
	return *ret ? 0 : err_nomem(err);
}

int cloche_files_readlink(cloche_files *f, const char *path, char **ret, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_READLINK, .path = str_from(path)};
	_cleanup_(freep) char *target = NULL;
	struct files_run run = {
		.f = f, .verb = "read link", .path = path, .answer = on_target, .user = &target};
	int r = files_do(&run, &q, err);

	if (r == 0 && !target)
		r = files_malformed(f, err);
	if (r == 0)
		*ret = TAKE_PTR(target);
	return r;
}

int cloche_files_mkdir(
	cloche_files *f, const char *path, uint32_t mode, bool parents, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_MKDIR,
		.flags = parents ? FILES_PARENTS : 0,
		.mode = files_mode(mode),
		.path = str_from(path)};
	struct files_run run = {.f = f, .verb = "make directory", .path = path};

	return files_do(&run, &q, err);
}

int cloche_files_remove(cloche_files *f, const char *path, bool recursive, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_REMOVE,
		.flags = recursive ? FILES_RECURSIVE : 0,
		.path = str_from(path)};
	struct files_run run = {.f = f, .verb = "remove", .path = path};

	return do_lenient(&run, &q, err);
}

int cloche_files_rename(
	cloche_files *f, const char *from, const char *to, bool replace, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_RENAME,
		.flags = replace ? FILES_REPLACE : 0,
		.path = str_from(from),
		.other = str_from(to)};
	struct files_run run = {.f = f, .verb = "rename", .path = from};

	if (q.other.n == 0)
		return err_set(err, E_USAGE, "rename %s: the new name is empty", from);
	return files_do(&run, &q, err);
}

int cloche_files_chmod(cloche_files *f, const char *path, uint32_t mode, cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_CHMOD, .mode = mode & 07777, .path = str_from(path)};
	struct files_run run = {.f = f, .verb = "change mode of", .path = path};

	return files_do(&run, &q, err);
}

int cloche_files_symlink(cloche_files *f, const char *target, const char *path, cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_SYMLINK, .path = str_from(path), .other = str_from(target)};
	struct files_run run = {.f = f, .verb = "make link", .path = path};

	if (q.other.n == 0)
		return err_set(err, E_USAGE, "make link %s: the target is empty", path);
	return files_do(&run, &q, err);
}

struct watching {
	void (*ready)(void *user);
	cloche_files_watch_fn fn;
	void *user;
	bool is_ready;
	struct buf path;
};

JOB_ASK1(call_watch_fn, cloche_files_watch_fn, bool, false, const cloche_files_event *)

static int on_events(
	struct files_run *run, struct watching *w, struct str payload, struct cloche_err *err)
{
	struct wire_in r = wire_in(payload);

	if (!w->is_ready || r.rest.n == 0)
		return files_malformed(run->f, err);
	while (r.rest.n) {
		cloche_files_event event;
		struct files_event m;

		if (!message_take(&r, files_event_message(), &m))
			return files_malformed(run->f, err);
		buf_clear(&w->path);
		event = (cloche_files_event){.change = (enum cloche_files_change)m.change,
			.is_directory = m.is_directory,
			.cookie = m.cookie};
		event.change_name = change_name(event.change);
		event.path = buf_add_str(&w->path, m.path) < 0 ? NULL : buf_cstr(&w->path);
		if (!event.path)
			return err_nomem(err);
		if (!call_watch_fn(w->fn, &event, w->user))
			return 1;
	}
	return 0;
}

static int on_watch(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct watching *w = run->user;

	if (frame->type == FILES_EVENTS)
		return on_events(run, w, frame->payload, err);
	if (frame->type != FILES_WATCHING || frame->payload.n || w->is_ready)
		return files_malformed(run->f, err);
	w->is_ready = true;
	if (w->ready)
		job_call(w->ready, w->user);
	return 0;
}

int cloche_files_watch(cloche_files *f, const char *path, bool recursive, void (*ready)(void *user),
	cloche_files_watch_fn fn, void *user, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_WATCH,
		.flags = recursive ? FILES_RECURSIVE : 0,
		.path = str_from(path)};
	struct watching w = {
		.ready = ready, .fn = fn, .user = user, .path = BUF_INIT(FILES_MAX_PATH + 1)};
	struct files_run run = {
		.f = f, .verb = "watch", .path = path, .answer = on_watch, .user = &w};
	int r = files_begin(&run, &q, err);

	if (r == 0) {
		f->watching = true;
		r = files_finish(&run, err);
		f->watching = false;
	}
	buf_done(&w.path);
	return r;
}
