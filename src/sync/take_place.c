/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what comes gets its place by a rename, from a temporary name in the same
 * directory, so it is whole or not there. Before that, what is in its place has to be what the scan
 * has seen; else it is the person's, who has just changed it, and the room's goes aside, as with
 * any change on both sides. A directory that goes aside takes along what is in it (sync_node.to).
 *
 * All directories are reached through directories alone, from the descriptor of the top: a link
 * that somebody puts there ends the pull (INV-NAMED-ONCE). Directories that are made, or have to be
 * opened for a change, get their modes at the end. */
#include "files/beneath.h"
#include "sync/take.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { ASIDE_TRIES = 1000 };

static int place_error(struct cloche_err *err, int r, const char *path)
{
	return err_sys(err, -r, "write %s", path);
}

/* Find a name for what goes aside: NAME.from-ID, with a counter if that exists. *path: its path;
 * replaced by the new one. */
static int place_aside(struct sync *s, int dir, char **path, struct cloche_err *err)
{
	struct str parent = sync_parent(*path);
	const char *name = sync_name(*path);
	char tail[SYNC_ID_MAX + 32], whole[PATH_MAX], *copy;
	struct stat st;

	for (unsigned i = 1; i <= ASIDE_TRIES; i++) {
		int n, room;

		if (i == 1)
			n = snprintf(tail, sizeof(tail), ".from-%s", s->o->id);
		else
			n = snprintf(tail, sizeof(tail), ".from-%s.%u", s->o->id, i);
		room = NAME_MAX - n;
		n = snprintf(whole, sizeof(whole), "%.*s%s%.*s%s", STR_FMT(parent),
			parent.n ? "/" : "", room, name, tail);
		if (n < 0 || (size_t)n >= sizeof(whole))
			return place_error(err, -ENAMETOOLONG, *path);
		if (fstatat(dir, sync_name(whole), &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		copy = errno == ENOENT ? str_dup(str_from(whole)) : NULL;
		if (!copy)
			return place_error(err, errno == ENOENT ? -ENOMEM : -errno, *path);
		free(*path);
		*path = copy;
		return 0;
	}
	return err_set(err, E_EXISTS, "there are %d other copies of %s", ASIDE_TRIES, *path);
}

/* Open the directory of a path for changes. The person may have closed it to himself. */
static int place_open(struct sync *s, const char *path, const char **ret_name)
{
	struct str parent = sync_parent(path);
	struct sync_node *n = parent.n ? sync_state_find(s->state, parent) : NULL;
	int dir = here_open_parent(s, path, ret_name);
	struct stat st;

	if (dir < 0 || !n || n->opened || n->here.type != SYNC_DIRECTORY ||
		(n->here.mode & 0300) == 0300)
		return dir;
	if (fstat(dir, &st) < 0 || fd_chmod(dir, (st.st_mode & 07777) | 0700) < 0)
		return dir;
	n->opened = true;
	n->settle_mode = n->settle ? n->settle_mode : n->here.mode;
	n->settle = true;
	return dir;
}

static int place_directory(struct sync *s, struct sync_node *n, struct cloche_err *err);

/* Get where the directory of a node is here. */
static int place_parent(
	struct sync *s, const struct sync_node *n, const char **ret, struct cloche_err *err)
{
	struct str parent = sync_parent(n->path);
	struct sync_node *dir = parent.n ? sync_state_find(s->state, parent) : NULL;
	int r;

	*ret = "";
	if (parent.n == 0)
		return 0;
	if (!dir)
		return files_malformed(s->f, err);
	r = place_directory(s, dir, err);
	*ret = dir->to ? dir->to : dir->path;
	return r;
}

static char *place_join(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);

	if (n >= 0 && (size_t)n < sizeof(path))
		return str_dup(str_from(path));
	errno = ENAMETOOLONG;
	return NULL;
}

/* Make way for a directory. Return 0, 1 if it has to go aside, or -errno. */
static int place_clear(const struct sync_node *n, int dir, const char *name)
{
	if (n->here.type == SYNC_ABSENT)
		return !here_is_still(dir, name, &n->here);
	if (n->action != SYNC_TAKE || !here_is_still(dir, name, &n->here))
		return 1;
	return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int place_make(
	struct sync *s, struct sync_node *n, char **where, bool away, struct cloche_err *err)
{
	const char *name;
	int dir = place_open(s, *where, &name), r;

	if (dir < 0)
		return place_error(err, dir, *where);
	r = away ? 0 : place_clear(n, dir, name);
	if (r < 0)
		return place_error(err, r, *where);
	if (r == 1) {
		r = place_aside(s, dir, where, err);
		if (r < 0)
			return r;
		sync_tell(s, SYNC_KEPT_BOTH, n->path, *where);
		away = true;
	}
	if (mkdirat(dir, sync_name(*where), 0700) < 0)
		return place_error(err, -errno, *where);
	n->made = n->settle = true;
	n->settle_mode = n->there.mode;
	s->report->entries++;
	if (away)
		n->to = TAKE_PTR(*where);
	else
		n->here = (struct sync_facts){.type = SYNC_DIRECTORY, .mode = 0700};
	return 0;
}

/* Have a directory here for what is in it there. */
static int place_directory(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	_cleanup_(freep) char *where = NULL;
	const char *parent;
	int r;

	if (n->to || n->here.type == SYNC_DIRECTORY)
		return 0;
	r = place_parent(s, n, &parent, err);
	if (r < 0)
		return r;
	where = place_join(parent, sync_name(n->path));
	if (!where)
		return place_error(err, -errno, n->path);
	return place_make(s, n, &where, strcmp(where, n->path) != 0, err);
}

int take_directory(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	bool only_mode = n->before.type == SYNC_DIRECTORY;
	int r;

	if (n->here.type == SYNC_DIRECTORY && !n->to) {
		if (n->action == SYNC_TAKE) {
			n->settle = true;
			n->settle_mode = n->there.mode;
		}
		sync_alike(n);
		return 0;
	}
	/* Its mode is no reason to have it again; what changed in it is. */
	r = n->action == SYNC_RESTORE && only_mode ? 0 : place_directory(s, n, err);
	if (r == 0)
		n->before = (struct sync_before){.type = SYNC_DIRECTORY, .mode = n->there.mode};
	return r;
}

int take_settle(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = s->n; i > 0; i--) {
		const struct sync_node *n = s->nodes[i - 1];
		const char *path = n->to ? n->to : n->path;
		_cleanup_fd_ int dir = -1;
		struct stat st;

		if (!n->settle)
			continue;
		dir = beneath_directory(s->top, str_from(path), false);
		if (dir < 0)
			continue; /* somebody has removed or moved it */
		if (fstat(dir, &st) < 0)
			r = -errno;
		else
			r = fd_chmod(dir, (st.st_mode & 07000) | n->settle_mode);
		if (r < 0)
			return place_error(err, r, path);
	}
	return 0;
}

int take_deletion(struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	bool is_directory = n->here.type == SYNC_DIRECTORY;
	const char *name;
	int dir = place_open(s, n->path, &name), r = 0;

	sync_pulse(s);
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP) {
		n->before.type = SYNC_ABSENT;
		return 0;
	}
	if (dir < 0)
		return err_sys(err, -dir, "delete %s", n->path);
	if (is_directory || here_is_still(dir, name, &n->here))
		r = unlinkat(dir, name, is_directory ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	else
		r = -EEXIST;
	/* What is the person's keeps its directory. A mount is not ours, either. */
	if (r < 0 && r != -ENOENT && r != -ENOTEMPTY && r != -EEXIST && r != -EBUSY)
		return err_sys(err, -r, "delete %s", n->path);
	if (r == -EEXIST && !is_directory)
		sync_tell(s, SYNC_KEPT, n->path, NULL);
	n->before.type = SYNC_ABSENT;
	if (r == 0) {
		n->here = (struct sync_facts){0};
		s->report->removed++;
		if (is_directory)
			here_forget_parent(s);
	}
	return 0;
}

/* --- a file or link --- */

void taking_done(struct taking *t)
{
	if (t->file.fd < 0 && t->file.name[0])
		unlinkat(t->dir, t->file.name, 0);
	replace_abort(&t->file);
	t->file = REPLACE_NULL;
	t->dir = fd_close(t->dir);
	free(t->where);
	t->where = NULL;
}

int taking_failed(const struct taking *t, struct cloche_err *err)
{
	if (t->too_much)
		return err_set(err, E_LIMIT, "what came of the copy is larger than %llu bytes",
			(unsigned long long)t->s->o->max_bytes);
	return place_error(err, t->error, t->where);
}

int taking_begin(struct taking *t, struct sync *s, struct sync_node *n, struct cloche_err *err)
{
	const char *parent;
	int dir, r;

	*t = (struct taking){.s = s, .n = n, .dir = -1, .file = REPLACE_NULL};
	r = place_parent(s, n, &parent, err);
	if (r < 0)
		return r;
	t->where = place_join(parent, sync_name(n->path));
	if (!t->where)
		return place_error(err, -errno, n->path);
	t->away = strcmp(t->where, n->path) != 0;
	dir = place_open(s, t->where, &t->name);
	t->dir = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (t->dir < 0)
		return place_error(err, dir < 0 ? dir : -errno, t->where);
	sha256_init(&t->h);
	return 0;
}

static bool taking_needs_name(struct sync *s, int dir)
{
	if (!s->asked_names)
		s->needs_names = replace_needs_name(dir);
	s->asked_names = true;
	return s->needs_names;
}

int taking_open(struct taking *t, struct cloche_err *err)
{
	replace_abort(&t->file);
	t->error = replace_begin_new(&t->file, t->dir, 0600, taking_needs_name(t->s, t->dir));
	t->got = 0;
	sha256_init(&t->h);
	return t->error < 0 ? taking_failed(t, err) : 0;
}

int taking_add(struct taking *t, const void *data, size_t n)
{
	struct sync *s = t->s;

	s->report->bytes += n;
	t->got += n;
	sha256_add(&t->h, str_make(data, n));
	t->too_much = s->o->max_bytes && s->report->bytes > s->o->max_bytes;
	if (t->too_much)
		t->error = -EFBIG;
	if (t->error == 0)
		t->error = fd_write_all(t->file.fd, data, n);
	sync_pulse(s);
	return t->error;
}

/* What changed there is the time or the mode alone. */
static bool taking_is_old(const struct taking *t, const uint8_t digest[SHA256_BYTES])
{
	const struct sync_node *n = t->n;
	const struct sync_before *b = &n->before;

	return b->type == n->there.type && memcmp(digest, b->digest, SHA256_BYTES) == 0 &&
	       (n->action != SYNC_TAKE || b->mode == n->there.mode);
}

/* Whether what is here is the same. Return 0 or 1, or -errno. */
static int taking_is_here(const struct taking *t, const uint8_t digest[SHA256_BYTES])
{
	struct sync_node *n = t->n;
	int r;

	if (n->action != SYNC_COMPARE || n->here.type != n->there.type || t->away)
		return 0;
	r = here_digest(t->s, n);
	if (r < 0)
		return r;
	return r == 0 && memcmp(digest, n->digest, SHA256_BYTES) == 0;
}

/* Make way. Return 0, 1 if it has to go aside, or -errno. */
static int taking_clear(const struct taking *t)
{
	const struct sync_node *n = t->n;
	/* If only its mode changed here, what is in it is taken, and the mode stays. */
	bool both = n->action == SYNC_COMPARE && !n->mode_only;

	if (t->away)
		return 0;
	if (both || (n->action != SYNC_TAKE && n->here.type == SYNC_DIRECTORY))
		return 1;
	if (n->here.type != SYNC_DIRECTORY)
		return !here_is_still(t->dir, t->name, &n->here);
	if (unlinkat(t->dir, t->name, AT_REMOVEDIR) == 0)
		return 0;
	return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR || errno == EBUSY ? 1
											   : -errno;
}

/* Give what changes a file, or goes beside it, to the owner and the group of that file, as far as
 * we may: root works in the directories of others. */
static void taking_give(const struct taking *t)
{
	struct stat st;

	if (t->away || fstatat(t->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode))
		return;
	if (fchownat(t->file.fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) < 0)
		(void)!fchownat(t->file.fd, "", (uid_t)-1, st.st_gid, AT_EMPTY_PATH);
}

/* Give it owner, mode and time, and get the time that it then has. */
static int taking_dress(struct taking *t, struct sync_time *ret)
{
	const struct sync_node *n = t->n;
	const struct sync_facts *there = &n->there;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = there->mtime.sec, .tv_nsec = there->mtime.nsec}};
	struct stat st;
	int r;

	if (t->file.fd < 0) {
		(void)!utimensat(t->dir, t->file.name, times, AT_SYMLINK_NOFOLLOW);
		r = fstatat(t->dir, t->file.name, &st, AT_SYMLINK_NOFOLLOW);
	} else {
		taking_give(t);
		if (fchmod(t->file.fd, n->mode_only ? n->here.mode : there->mode) < 0)
			return -errno;
		(void)!futimens(t->file.fd, times);
		r = fstat(t->file.fd, &st);
	}
	if (r < 0)
		return -errno;
	*ret = here_facts(&st).mtime;
	return 0;
}

static int taking_place(struct taking *t, struct sync_time *ret, struct cloche_err *err)
{
	struct sync_node *n = t->n;
	bool over = !t->away && n->here.type != SYNC_ABSENT && n->here.type != SYNC_DIRECTORY;
	int r = taking_dress(t, ret);

	if (r == 0)
		r = taking_clear(t);
	if (r < 0)
		return place_error(err, r, t->where);
	if (r == 1) {
		t->aside = true;
		over = false;
		r = place_aside(t->s, t->dir, &t->where, err);
		if (r < 0)
			return r;
	}
	r = replace_commit(&t->file, sync_name(t->where), over);
	t->file = REPLACE_NULL;
	if (r < 0)
		return place_error(err, r, t->where);
	t->s->report->entries++;
	if (t->aside)
		sync_tell(t->s, SYNC_KEPT_BOTH, n->path, t->where);
	else if (n->action == SYNC_RESTORE)
		sync_tell(t->s, SYNC_RESTORED, n->path, NULL);
	return 0;
}

int taking_finish(struct taking *t, struct cloche_err *err)
{
	struct sync_node *n = t->n;
	struct sync_time here = {0};
	uint8_t digest[SHA256_BYTES];
	bool recent = sync_is_recent(n->there.mtime), mine;
	int r;

	sha256_bytes(&t->h, digest);
	if (taking_is_old(t, digest)) {
		n->before.there = n->there.mtime;
		n->before.mode = n->there.mode;
		n->before.unsure_there = recent;
		return 0;
	}
	r = taking_is_here(t, digest);
	if (r < 0)
		return place_error(err, r, t->where);
	if (r == 1) {
		sync_alike(n);
		n->before.unsure_there = recent;
		return 0;
	}
	r = taking_place(t, &here, err);
	if (r < 0)
		return r;
	mine = !t->aside && !t->away;
	n->before = (struct sync_before){.type = n->there.type,
		.unsure_here = !mine,
		.unsure_there = recent,
		.mode = n->there.mode,
		.size = n->there.size,
		.here = here,
		.there = n->there.mtime};
	memcpy(n->before.digest, digest, SHA256_BYTES);
	return 0;
}
