/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: inotify. It watches directories, not trees, so in a recursive watch each
 * directory has a watch and a node that knows its parent, and new directories are added when their
 * event comes. Everything made in them before that is reported as created when they are searched,
 * so an entry may be reported twice, but is never missed. A directory that is renamed within the
 * tree keeps its watches: the kernel reports both names one after the other, with the same cookie.
 *
 * The watched directory is not kept open between events, because the kernel reports its removal
 * only when it is no longer open.
 *
 * A file is watched through its directory, so that its replacement by a rename is seen as well. The
 * kernel does not wait for slow readers: the events that it drops are reported as an overflow. */
#include "base/fd.h"
#include "base/hash.h"
#include "fileworker/serve_internal.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	EVENTS_BYTES = 48 * 1024,
	MASK = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM |
	       IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW |
	       IN_EXCL_UNLINK,
};

struct node {
	int wd;
	struct node *parent; /* NULL: the top */
	char *name;
	struct node *next; /* waiting to be searched */
	UT_hash_handle hh;
};

struct watcher {
	struct server *s;
	struct files_error *e;
	int fd;
	int top;         /* watched directory, or the one that holds the file; -1: not open now */
	struct str path; /* of what is watched */
	dev_t device;    /* of the directory */
	ino_t inode;
	char *only; /* the file's name; NULL for a directory */
	bool recursive, over;
	struct node *nodes, *top_node;
	struct node *todo;
	struct node *moving; /* moved away by the last event; NULL: none */
	uint32_t moving_cookie;
	struct frame_out frame;
	bool in_frame;
};

static int limit(struct watcher *w, int errnum)
{
	if (errnum == ENOSPC)
		return files_fail(w->e, EMFILE, STR_NULL,
			"too many directories to watch (sysctl fs.inotify.max_user_watches)");
	if (errnum == EMFILE)
		return files_fail(w->e, EMFILE, STR_NULL,
			"too many watchers (sysctl fs.inotify.max_user_instances)");
	return -errnum;
}

/* Get the path of a node, relative to the top, followed by name (may be NULL). */
static int node_path(const struct node *n, const char *name, struct buf *ret)
{
	const struct node *chain[1024], *at = n;
	size_t depth = 0;
	int r = 0;

	/* Deeper than that nothing is watched. */
	for (; at->parent && depth < ARRAY_SIZE(chain); at = at->parent)
		chain[depth++] = at;
	buf_clear(ret);
	while (r == 0 && depth > 0) {
		r = buf_add_str(ret, str_from(chain[--depth]->name));
		if (r == 0 && (depth > 0 || name))
			r = buf_add_char(ret, '/');
	}
	if (r == 0 && name)
		r = buf_add_str(ret, str_from(name));
	return r;
}

static int end_frame(struct watcher *w)
{
	if (!w->in_frame)
		return 0;
	w->in_frame = false;
	if (frame_end(&w->frame, NULL, 0) < 0)
		return server_break(w->s, -ENOBUFS);
	return server_flush(w->s);
}

static int put_event(struct watcher *w, const struct files_event *m)
{
	if (!w->in_frame) {
		w->frame = frame_begin(&w->s->c, FILES_EVENTS);
		w->in_frame = true;
	}
	message_put(&w->frame.w, files_event_message(), m);
	if (!w->frame.w.b || w->frame.w.error < 0)
		return server_break(w->s, -ENOBUFS);
	return buf_len(w->frame.w.b) - w->frame.mark > EVENTS_BYTES ? end_frame(w) : 0;
}

static bool is_below(const struct node *n, const struct node *top)
{
	for (; n; n = n->parent)
		if (n == top)
			return true;
	return false;
}

static void node_free(struct node *n)
{
	free(n->name);
	free(n);
}

/* Stop watching a directory that is gone, and everything below it. */
static void forget(struct watcher *w, struct node *top)
{
	struct node *n, *tmp, **at, *gone = NULL;

	for (at = &w->todo; *at;) {
		n = *at;
		if (is_below(n, top))
			*at = n->next;
		else
			at = &n->next;
	}
	/* Find all nodes before freeing any, because they point to each other. */
	HASH_ITER (hh, w->nodes, n, tmp) {
		if (!is_below(n, top))
			continue;
		n->next = gone;
		gone = n;
	}
	while (gone) {
		n = gone;
		gone = n->next;
		HASH_DEL(w->nodes, n);
		inotify_rm_watch(w->fd, n->wd);
		node_free(n);
	}
}

/* Watch a directory. If the watch is recursive, it will be searched. */
static int add(struct watcher *w, int dir, struct node *parent, const char *name)
{
	struct node *n, *known;
	int wd;

	/* inotify takes only paths, and there may be no /proc to name a descriptor by. */
	if (fchdir(dir) < 0)
		return -errno;
	wd = inotify_add_watch(w->fd, ".", MASK);
	if (wd < 0)
		return limit(w, errno);
	HASH_FIND_INT(w->nodes, &wd, known);
	if (known)
		return 0; /* found twice, or mounted in two places */
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	*n = (struct node){.wd = wd, .parent = parent, .name = strdup(name)};
	if (n->name)
		HASH_ADD_INT(w->nodes, wd, n);
	if (!n->name || !n->hh.tbl) {
		node_free(n);
		return -ENOMEM;
	}
	if (!parent)
		w->top_node = n;
	n->next = w->todo;
	w->todo = n;
	return 0;
}

static int add_below(struct watcher *w, struct node *parent, int dir, const char *name)
{
	_cleanup_fd_ int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* It vanished, or is not a directory any more: its own events report that. */
	return fd < 0 ? 0 : add(w, fd, parent, name);
}

/* Open a watched directory. Return an O_PATH descriptor or -errno. */
static int open_node(struct watcher *w, const struct node *n)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(FILES_MAX_PATH);
	struct stat st;
	int r = node_path(n, NULL, &path);

	if (r == 0 && w->top < 0) {
		w->top = beneath_open(w->s->root, w->s->base, w->path, O_PATH | O_DIRECTORY);
		r = w->top < 0 ? w->top : 0;
	}
	if (r < 0 || fstat(w->top, &st) < 0)
		return r < 0 ? r : -errno;
	if (st.st_dev != w->device || st.st_ino != w->inode)
		return -ESTALE;
	return beneath_directory(w->top, buf_str(&path), false);
}

static void let_go(struct watcher *w)
{
	w->top = fd_close(w->top);
	(void)!chdir("/");
}

static int look_at(struct watcher *w, struct node *n, DIR *dir, bool tell, struct buf *path)
{
	struct dirent *d;
	int r = 0;

	while (r == 0 && (d = fs_list_next(dir))) {
		struct files_event m = {.change = FILES_CREATED};
		struct stat st;

		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		m.is_directory = S_ISDIR(st.st_mode);
		if (tell) {
			r = node_path(n, d->d_name, path);
			m.path = buf_str(path);
			r = r < 0 ? r : put_event(w, &m);
		}
		if (r == 0 && m.is_directory)
			r = add_below(w, n, dirfd(dir), d->d_name);
	}
	return r;
}

/* Search the directories that were added. tell: report what is in them. */
static int look_through(struct watcher *w, bool tell)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(FILES_MAX_PATH);
	int r = 0;

	while (r == 0 && w->todo) {
		struct node *n = w->todo;
		_cleanup_(fs_list_closep) DIR *d = NULL;
		int dir;

		w->todo = n->next;
		n->next = NULL;
		if (!w->recursive)
			continue;
		dir = open_node(w, n);
		d = dir < 0 ? NULL : fs_list(dir, ".");
		fd_close(dir);
		if (!d)
			continue; /* gone, or not permitted */
		r = look_at(w, n, d, tell, &path);
		if (r == 0)
			r = server_check(w->s);
	}
	return r;
}

static int change_of(uint32_t mask)
{
	static const struct {
		uint32_t bit;
		enum files_change change;
	} table[] = {{IN_CREATE, FILES_CREATED}, {IN_MODIFY, FILES_MODIFIED},
		{IN_CLOSE_WRITE, FILES_WRITTEN}, {IN_ATTRIB, FILES_CHANGED},
		{IN_DELETE, FILES_DELETED}, {IN_MOVED_FROM, FILES_MOVED_FROM},
		{IN_MOVED_TO, FILES_MOVED_TO}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (mask & table[i].bit)
			return (int)table[i].change;
	return -1;
}

static struct node *find_child(const struct watcher *w, const struct node *parent, const char *name)
{
	struct node *n, *tmp;

	HASH_ITER (hh, w->nodes, n, tmp)
		if (n->parent == parent && strcmp(n->name, name) == 0)
			return n;
	return NULL;
}

/* Handle the event after a directory has moved away: it has a new name in the tree, or has left
 * it. */
static int settle_moving(struct watcher *w, const struct inotify_event *ev)
{
	struct node *parent, *n = TAKE_PTR(w->moving);
	char *name;

	if (!n)
		return 0;
	HASH_FIND_INT(w->nodes, &ev->wd, parent);
	if (!parent || !(ev->mask & IN_MOVED_TO) || ev->cookie != w->moving_cookie) {
		forget(w, n);
		return 0;
	}
	name = strdup(ev->name);
	if (!name)
		return -ENOMEM;
	free(n->name);
	n->name = name;
	n->parent = parent;
	return 0;
}

/* Update the nodes after a directory came or went. */
static int follow(struct watcher *w, struct node *n, const struct inotify_event *ev)
{
	struct node *child;
	int dir, r;

	if (!w->recursive || !(ev->mask & IN_ISDIR))
		return 0;
	child = find_child(w, n, ev->name);
	if (ev->mask & IN_MOVED_FROM) {
		w->moving = child;
		w->moving_cookie = ev->cookie;
		return 0;
	}
	if (ev->mask & IN_DELETE && child)
		forget(w, child);
	if (!(ev->mask & (IN_CREATE | IN_MOVED_TO)))
		return 0;
	dir = open_node(w, n);
	if (dir < 0)
		return 0;
	r = add_below(w, n, dir, ev->name);
	fd_close(dir);
	return r < 0 ? r : look_through(w, true);
}

/* Handle an event of a watched directory itself. */
static int on_self(struct watcher *w, struct node *n, uint32_t mask)
{
	const struct files_event gone = {.change = FILES_GONE};
	const struct files_event changed = {.change = FILES_CHANGED, .is_directory = true};

	if (n != w->top_node) {
		/* Its parent reports a removal, unless a rename replaced the directory. */
		if (mask & IN_IGNORED)
			forget(w, n);
		return 0;
	}
	if (mask & IN_ATTRIB && !w->only)
		return put_event(w, &changed);
	if (!(mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)))
		return 0;
	w->over = true;
	return put_event(w, &gone);
}

static int on_event(struct watcher *w, const struct inotify_event *ev, struct buf *path)
{
	const struct files_event overflow = {.change = FILES_OVERFLOW};
	struct files_event m = {.is_directory = ev->mask & IN_ISDIR, .cookie = ev->cookie};
	int change = change_of(ev->mask), r;
	struct node *n;

	r = settle_moving(w, ev);
	if (r < 0)
		return r;
	if (ev->mask & IN_Q_OVERFLOW)
		return put_event(w, &overflow);
	HASH_FIND_INT(w->nodes, &ev->wd, n);
	if (!n)
		return 0;
	if (ev->len == 0)
		return on_self(w, n, ev->mask);
	if (change < 0 || (w->only && strcmp(ev->name, w->only) != 0))
		return 0;
	r = w->only ? 0 : node_path(n, ev->name, path);
	if (r < 0)
		return r;
	m.change = (enum files_change)change;
	m.path = buf_str(path);
	r = put_event(w, &m);
	return r < 0 ? r : follow(w, n, ev);
}

static int read_events(struct watcher *w)
{
	_Alignas(struct inotify_event) char events[32 * 1024];
	_cleanup_(buf_donep) struct buf path = BUF_INIT(FILES_MAX_PATH);
	ssize_t n = read(w->fd, events, sizeof(events));
	int r = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (ssize_t at = 0; r == 0 && !w->over && at < n;) {
		const struct inotify_event *ev = (const void *)(events + at);

		buf_clear(&path);
		r = on_event(w, ev, &path);
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
	if (r == 0)
		r = end_frame(w);
	return r;
}

static int watch(struct watcher *w)
{
	int r = add(w, w->top, NULL, "");

	if (r == 0)
		r = look_through(w, false);
	let_go(w);
	if (r == 0 && files_send_empty(&w->s->c, FILES_WATCHING) < 0)
		r = server_break(w->s, -ENOBUFS);
	if (r == 0)
		r = server_flush(w->s);
	while (r == 0 && !w->over) {
		struct pollfd p[2] = {
			{.fd = w->s->c.fd, .events = POLLIN}, {.fd = w->fd, .events = POLLIN}};

		/* Check first: a CANCEL may have been received with the request. */
		r = server_check(w->s);
		if (r == 0 && poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (r == 0 && p[1].revents)
			r = read_events(w);
		if (w->top >= 0)
			let_go(w);
	}
	return r;
}

static void done(struct watcher *w)
{
	struct node *n, *tmp;

	HASH_ITER (hh, w->nodes, n, tmp) {
		HASH_DEL(w->nodes, n);
		node_free(n);
	}
	if (w->in_frame)
		chan_abort(&w->s->c, w->frame.mark);
	fd_close(w->fd);
	let_go(w);
}

/* Open the directory to watch, or the one that holds the file. */
static int open_top(struct watcher *w, struct str path)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	struct stat st;
	int r = beneath_find(w->s->root, w->s->base, path, BENEATH_FOLLOW, &at);

	if (r < 0)
		return r;
	if (at.name[0] && fstatat(at.dir, at.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (at.name[0] && !S_ISDIR(st.st_mode)) {
		w->recursive = false;
		w->only = strdup(at.name);
		if (!w->only)
			return -ENOMEM;
		at.name[0] = '\0';
	}
	w->top = openat(
		at.dir, at.name[0] ? at.name : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->top < 0 || fstat(w->top, &st) < 0)
		return -errno;
	w->device = st.st_dev;
	w->inode = st.st_ino;
	return 0;
}

int serve_watch(struct server *s, const struct files_request *q, struct files_error *e)
{
	struct watcher w = {.s = s,
		.e = e,
		.fd = -1,
		.top = -1,
		.path = q->path,
		.recursive = q->flags & FILES_RECURSIVE};
	int r = open_top(&w, q->path);

	if (r == 0) {
		w.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		r = w.fd < 0 ? limit(&w, errno) : 0;
	}
	if (r == 0)
		r = watch(&w);
	done(&w);
	free(w.only);
	return r;
}
