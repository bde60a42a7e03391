/* SPDX-License-Identifier: Apache-2.0 */
/* What of a run is to be put back. A name is compared with what was there before the run and with
 * what the run left: if it is neither, it is somebody else's by now, and stays. Rooms of this
 * machine and the person may change everything meanwhile: each name is reached from the descriptor
 * of the granted directory, through directories alone (INV-NAMED-ONCE). */
#include "api/record/undo.h"
#include "base/fd.h"
#include "files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 128 << 10 };

const char UNDO_CHANGED[] = "it was changed since";
const char UNDO_NO_CONTENTS[] = "its former contents are not on record";
const char UNDO_NOT_EMPTY[] = "something else is in it";
static const char NOT_SEEN[] = "the record does not say what the run left there";
static const char NOT_ALL[] = "not all that was or is in it is on record";
static const char NO_RIGHTS[] = "its set-id bits do not come back";

/* --- a name as it is now --- */

void undo_look_done(struct undo_look *l)
{
	l->dir = fd_close(l->dir);
}

int undo_look(const struct undo_item *it, struct undo_look *ret)
{
	const char *slash = strrchr(it->path, '/');
	struct str parent = slash ? str_make(it->path, (size_t)(slash - it->path)) : STR("");
	int dir = beneath_directory(it->top->fd, parent, false);

	*ret = (struct undo_look){.dir = -1, .name = slash ? slash + 1 : it->path};
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	if (dir < 0)
		return dir;
	ret->dir = dir;
	if (fstatat(dir, ret->name, &ret->st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	ret->st.st_mode = 0;
	return errno == ENOENT ? 0 : -errno;
}

bool undo_is_still(const struct undo_look *l)
{
	const struct stat *was = &l->st;
	struct stat st;

	if (l->dir < 0)
		return false;
	if (fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && was->st_mode == 0;
	/* The time of a directory changes with what is put back in it. */
	return st.st_mode == was->st_mode && st.st_dev == was->st_dev && st.st_ino == was->st_ino &&
	       (S_ISDIR(st.st_mode) ||
		       (st.st_size == was->st_size && st.st_ctim.tv_sec == was->st_ctim.tv_sec &&
			       st.st_ctim.tv_nsec == was->st_ctim.tv_nsec));
}

static int undo_hash_file(const struct undo_look *l, struct sha256 *h)
{
	_cleanup_fd_ int fd =
		openat(l->dir, l->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_(freep) char *piece = malloc(PIECE);
	uint64_t left = (uint64_t)l->st.st_size;
	struct stat st;
	ssize_t n = 1;

	if (!piece)
		return -ENOMEM;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_ino != l->st.st_ino)
		return -ESTALE;
	/* It may grow without end meanwhile. */
	while (left > 0 && (n = read(fd, piece, (size_t)MIN(left, (uint64_t)PIECE))) > 0) {
		sha256_add(h, str_make(piece, (size_t)n));
		left -= (uint64_t)n;
	}
	return n < 0 ? -errno : 0;
}

/* Return 1 or 0, or -errno of what cannot be read. */
static int undo_has_text(const struct undo_look *l, const char *digest, uint64_t size)
{
	char target[STATE_PATH_MAX + 1], own[SHA256_HEX_MAX];
	struct sha256 h;
	ssize_t n;
	int r;

	if ((uint64_t)l->st.st_size != size)
		return 0;
	sha256_init(&h);
	if (S_ISLNK(l->st.st_mode)) {
		n = readlinkat(l->dir, l->name, target, sizeof(target));
		if (n < 0)
			return -errno;
		sha256_add(&h, str_make(target, (size_t)n));
	} else {
		r = undo_hash_file(l, &h);
		if (r < 0)
			return r;
	}
	sha256_hex(&h, own);
	return strcmp(own, digest) == 0;
}

/* --- what the record says --- */

static bool undo_is_skipped(const struct tree_node *n)
{
	return n->mark[UNDO_SKIPPED] != 0;
}

/* Whether names in a directory around it are missing in the record. */
static bool undo_is_unseen(const struct tree_node *n)
{
	for (; n; n = n->key->parent) {
		if (undo_is_skipped(n))
			return true;
		if (n->mark[UNDO_TOP] || n->other->mark[UNDO_TOP])
			return false;
	}
	return false;
}

/* The record of the workspace has all that is there, so what it does not name is not there. */
enum tree_type undo_type(const struct tree_node *n)
{
	if (n->type == TREE_OTHER || (n->type != TREE_DIRECTORY && undo_is_skipped(n)))
		return TREE_UNKNOWN;
	if (n->type != TREE_UNKNOWN)
		return n->type;
	for (const struct tree_node *in = n->children; in; in = in->next)
		if (in->type > TREE_GONE)
			return TREE_DIRECTORY;
	return undo_is_unseen(n) ? TREE_UNKNOWN : TREE_GONE;
}

static bool undo_knows_contents(const struct tree_node *n)
{
	return !n->partial && (!n->lost || n->sum);
}

/* Whether the name has this content now. Return 1 or 0, -errno, or an error with err. */
static int undo_has(const struct cloche_undo *u, const struct undo_look *l,
	const struct tree_node *n, struct cloche_err *err)
{
	enum tree_type type = undo_type(n);
	char digest[SHA256_HEX_MAX];
	uint64_t size;
	int r;

	if (type == TREE_GONE || l->st.st_mode == 0)
		return type == TREE_GONE && l->st.st_mode == 0;
	if (type == TREE_DIRECTORY)
		return S_ISDIR(l->st.st_mode);
	if (type == TREE_UNKNOWN || !undo_knows_contents(n) ||
		!(type == TREE_LINK ? S_ISLNK(l->st.st_mode) : S_ISREG(l->st.st_mode)))
		return 0;
	r = tree_digest(&u->was, n, digest, &size, err);
	if (r == 0)
		r = undo_has_text(l, digest, size);
	if (r == 0 && type == TREE_FILE && str_eq(tree_name(n), STR("index")) &&
		undo_is_git(u, n->key->parent))
		r = undo_is_index_of(u, l, n);
	return r;
}

int undo_is_changed(const struct cloche_undo *u, const struct undo_item *it, struct cloche_err *err)
{
	enum tree_type was = undo_type(it->was), is = undo_type(it->is);
	int r;

	if (was == TREE_UNKNOWN || is == TREE_UNKNOWN)
		return was != is || it->was->mark[UNDO_SKIPPED] != it->is->mark[UNDO_SKIPPED];
	if (was != is)
		return 1;
	if (was == TREE_GONE || was == TREE_DIRECTORY)
		return 0;
	r = tree_is_same(&u->was, it->was, it->is, err);
	return r < 0 ? r : !r;
}

/* --- judging --- */

static enum tree_type undo_type_now(const struct undo_look *l)
{
	return l->st.st_mode == 0       ? TREE_GONE
	       : S_ISDIR(l->st.st_mode) ? TREE_DIRECTORY
	       : S_ISREG(l->st.st_mode) ? TREE_FILE
	       : S_ISLNK(l->st.st_mode) ? TREE_LINK
					: TREE_OTHER;
}

/* Whether an undo that was killed may have left it so: something of one type was removed, and that
 * of another type is not there yet. */
static bool undo_is_between(enum tree_type was, enum tree_type is, const struct undo_look *l)
{
	return l->st.st_mode == 0 && was > TREE_GONE && is > TREE_GONE && was != is;
}

static int undo_judge_contents(struct cloche_undo *u, struct undo_item *it,
	const struct undo_look *l, struct cloche_err *err)
{
	enum tree_type was = undo_type(it->was), is = undo_type(it->is);
	int r = undo_is_changed(u, it, err);

	if (r <= 0)
		return r;
	r = was == TREE_UNKNOWN ? 0 : undo_has(u, l, it->was, err);
	if (r != 0)
		return MIN(r, 0);
	if (was == TREE_UNKNOWN || (was > TREE_DIRECTORY && !undo_knows_contents(it->was))) {
		it->why = UNDO_NO_CONTENTS;
		return 0;
	}
	r = undo_is_between(was, is, l) ? 1 : undo_has(u, l, it->is, err);
	if (r == 0)
		it->why = is == TREE_UNKNOWN ? NOT_SEEN : UNDO_CHANGED;
	it->contents = r > 0;
	return MIN(r, 0);
}

/* The bits that are put back. A program gets no rights of its owner. */
static uint32_t undo_permissions(const struct undo_item *it)
{
	return it->old == TREE_DIRECTORY ? 03777 : 01777;
}

const char *undo_remainder(const struct undo_item *it, const struct undo_look *l)
{
	uint32_t mode = it->was->mode;

	if (it->old == TREE_DIRECTORY)
		return undo_is_skipped(it->was) || undo_is_skipped(it->is) ? NOT_ALL : NULL;
	if (it->old == TREE_FILE && mode != STATE_NO_MODE && (mode & 06000 & ~l->st.st_mode))
		return NO_RIGHTS;
	return NULL;
}

/* A mode is put back by itself, and what somebody has set since stays. */
static void undo_judge_mode(struct undo_item *it, uint32_t now)
{
	uint32_t was = it->was->mode, is = it->is->mode, bits = undo_permissions(it);
	bool is_directory = it->old == TREE_DIRECTORY;
	bool is_known = was != STATE_NO_MODE && is != STATE_NO_MODE;
	/* A directory that an undo opened, or has just made, before it was killed. */
	bool is_opened;

	it->old_mode = was != STATE_NO_MODE ? was & bits : is_directory ? 0755 : 0644;
	is_opened = is_directory && now == (it->old_mode | 0700);
	if (it->contents && it->now == it->old && is != STATE_NO_MODE && now != (is & bits))
		it->old_mode = now;
	if (it->contents || (it->old != TREE_FILE && !is_directory) || it->now != it->old ||
		now == it->old_mode || was == STATE_NO_MODE)
		return;
	if (undo_type(it->is) != it->old) {
		it->mode = is_opened;
		return;
	}
	if (!is_known || ((is ^ was) & bits) == 0)
		return;
	it->mode = is_opened || now == (is & bits);
	if (!it->mode)
		it->why = "its mode was changed since";
}

int undo_judge(
	struct cloche_undo *u, struct undo_item *it, struct undo_look *ret, struct cloche_err *err)
{
	const struct obeyed *row;
	int r = undo_look(it, ret);

	it->contents = it->mode = false;
	it->old = undo_type(it->was);
	it->now = undo_type_now(ret);
	if (r == 0)
		r = undo_judge_contents(u, it, ret, err);
	if (r < 0) {
		/* What cannot be read, or has not its digest, is a matter of this name alone. */
		if (r == -ENOMEM || r == -E_NO_MEMORY)
			return err_nomem(err);
		it->why = err_is_code((uint32_t)-r) ? UNDO_NO_CONTENTS : err_errno_text(-r);
		err_clear(err);
		return 0;
	}
	if (!it->why)
		undo_judge_mode(it, ret->st.st_mode & undo_permissions(it));
	row = undo_is_due(it) && it->old > TREE_GONE ? undo_obeyed(u, it) : NULL;
	if (row)
		it->why = "programs of this machine obey it, so only you put it back";
	return 0;
}
