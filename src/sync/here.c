/* SPDX-License-Identifier: Apache-2.0 */
/* The side of the person. Rooms of this machine, or the person, may change it meanwhile: everything
 * is found below the directory's descriptor and through no link (INV-NAMED-ONCE). */
#include "files/beneath.h"
#include "fs/fswalk.h"
#include "sync/internal.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 128 * 1024, MAX_RULES = 20 * 1000 };

struct sync_facts here_facts(const struct stat *st)
{
	struct sync_facts f = {.type = S_ISREG(st->st_mode)   ? SYNC_FILE
				       : S_ISDIR(st->st_mode) ? SYNC_DIRECTORY
				       : S_ISLNK(st->st_mode) ? SYNC_LINK
							      : SYNC_ABSENT,
		.mode = st->st_mode & 0777,
		.size = (uint64_t)st->st_size,
		.mtime = {st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec}};

	if (f.type == SYNC_DIRECTORY)
		f.size = 0;
	if (f.type == SYNC_LINK)
		f.mode = 0;
	return f;
}

/* --- rules --- */

/* Read a file of rules. One that is not there, or cannot be read, has none. */
static int rules_read(struct sync *s, int dir, const char *name, struct ignore_rules **ret)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	text = malloc(IGNORE_MAX_TEXT);
	if (!text)
		return -ENOMEM;
	while (n < IGNORE_MAX_TEXT && (got = read(fd, text + n, IGNORE_MAX_TEXT - n)) > 0)
		n += (size_t)got;
	ignore_free(*ret);
	*ret = ignore_parse(str_make(text, n));
	if (!*ret)
		return -ENOMEM;
	s->rules_n += ignore_count(*ret);
	return s->rules_n > MAX_RULES ? -E2BIG : 0;
}

static int rules_read_top(struct sync *s)
{
	_cleanup_fd_ int git = -1;
	int r;

	if (s->o->what != SYNC_TRACKED)
		return 0;
	r = rules_read(s, s->top, ".gitignore", &s->rules);
	git = beneath_directory(s->top, STR(".git/info"), false);
	return r == 0 && git >= 0 ? rules_read(s, git, "exclude", &s->excluded) : r;
}

/* --- the scan --- */

struct here_walk {
	struct sync *s;
	size_t entries;
};

static int here_blind(struct sync *s, const char *path, enum sync_event event)
{
	struct sync_node *n = sync_state_add(s->state, str_from(path));

	sync_tell(s, event, path, NULL);
	if (n)
		n->blind = true;
	return n || strlen(path) >= PATH_MAX ? 0 : -ENOMEM;
}

static bool here_is_hidden(const struct sync *s, const char *path)
{
	for (size_t i = 0; i < s->o->hidden_n; i++)
		if (strcmp(s->o->hidden[i], path) == 0)
			return true;
	return false;
}

static int here_entry(void *user, const struct fswalk_entry *e)
{
	struct here_walk *w = user;
	struct sync *s = w->s;
	struct sync_node *n;
	struct sync_facts facts;
	struct stat st;

	if (sync_is_temporary(e->name) || sync_is_ignored(s, e->path, e->type == DT_DIR) ||
		here_is_hidden(s, e->path))
		return 0;
	sync_pulse(s);
	if (++w->entries > s->max_entries)
		return -E2BIG;
	if (strlen(e->path) >= PATH_MAX)
		return here_blind(s, e->path, SYNC_TOO_DEEP);
	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : here_blind(s, e->path, SYNC_UNREADABLE);
	facts = here_facts(&st);
	if (facts.type == SYNC_ABSENT)
		return here_blind(s, e->path, SYNC_SPECIAL);
	n = sync_state_add(s->state, str_from(e->path));
	if (!n)
		return -ENOMEM;
	n->here = facts;
	return facts.type == SYNC_DIRECTORY ? FSWALK_INTO : 0;
}

static int here_entered(void *user, const struct fswalk_entry *e, int fd, const struct stat *st)
{
	struct here_walk *w = user;
	struct sync_node *n = sync_state_find(w->s->state, str_from(e->path));

	return w->s->o->what == SYNC_TRACKED && n ? rules_read(w->s, fd, ".gitignore", &n->rules)
						  : 0;
}

static int here_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	struct here_walk *w = user;
	struct sync_node *n = sync_state_find(w->s->state, str_from(e->path));

	if (errnum == ENOENT) {
		if (n)
			n->here = (struct sync_facts){0};
		return 0;
	}
	return here_blind(w->s, e->path, errnum == ENAMETOOLONG ? SYNC_TOO_DEEP : SYNC_UNREADABLE);
}

/* Look at the one file. */
static int here_scan_one(struct sync *s)
{
	struct sync_node *n = sync_state_add(s->state, str_from(s->o->one));
	struct stat st;

	if (!n)
		return -ENOMEM;
	if (fstatat(s->top, s->o->one, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : here_blind(s, n->path, SYNC_UNREADABLE);
	n->here = here_facts(&st);
	return n->here.type == SYNC_ABSENT ? here_blind(s, n->path, SYNC_SPECIAL) : 0;
}

int here_scan(struct sync *s, struct cloche_err *err)
{
	struct here_walk w = {.s = s};
	const struct fswalk_how how = {.levels = SYNC_MAX_DEPTH,
		.user = &w,
		.entry = here_entry,
		.entered = here_entered,
		.missed = here_missed};
	int r = s->o->one ? here_scan_one(s) : rules_read_top(s);

	if (r == 0 && !s->o->one)
		r = fswalk(s->top, "", &how);
	if (r == -E2BIG && s->rules_n > MAX_RULES)
		return err_set(
			err, E_LIMIT, "the .gitignore files have more than %d rules", MAX_RULES);
	if (r == -E2BIG)
		return err_set(
			err, E_LIMIT, "the directory has more than %zu entries", s->max_entries);
	return r < 0 ? err_sys(err, -r, "read the directory") : 0;
}

/* --- one file --- */

void here_forget_parent(struct sync *s)
{
	s->dir = fd_close(s->dir);
	free(s->dir_path);
	s->dir_path = NULL;
}

int here_open_parent(struct sync *s, const char *path, const char **ret_name)
{
	struct str parent = sync_parent(path);

	*ret_name = sync_name(path);
	if (s->dir >= 0 && str_eq(parent, str_from(s->dir_path)))
		return s->dir;
	here_forget_parent(s);
	s->dir_path = str_dup(parent);
	if (!s->dir_path)
		return -ENOMEM;
	s->dir = beneath_directory(s->top, parent, false);
	return s->dir;
}

bool here_is_still(int dir, const char *name, const struct sync_facts *facts)
{
	struct sync_facts now;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && facts->type == SYNC_ABSENT;
	now = here_facts(&st);
	return now.type != SYNC_ABSENT && now.type == facts->type &&
	       (now.type == SYNC_DIRECTORY ||
		       (now.size == facts->size && sync_time_eq(now.mtime, facts->mtime)));
}

static int hash_file(struct sync *s, int dir, const char *name, struct sha256 *h)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_(freep) char *piece = malloc(PIECE);
	ssize_t n;

	if (!piece)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	while ((n = read(fd, piece, PIECE)) > 0) {
		sha256_add(h, str_make(piece, (size_t)n));
		sync_pulse(s);
	}
	return n < 0 ? -errno : 0;
}

static int hash_link(int dir, const char *name, struct sha256 *h)
{
	char target[FILES_MAX_TARGET];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	sha256_add(h, str_make(target, (size_t)n));
	return 0;
}

int here_digest(struct sync *s, struct sync_node *n)
{
	const char *name;
	struct sha256 h;
	int dir, r;

	if (n->hashed)
		return 0;
	sha256_init(&h);
	r = dir = here_open_parent(s, n->path, &name);
	if (dir >= 0)
		r = n->here.type == SYNC_LINK ? hash_link(dir, name, &h)
					      : hash_file(s, dir, name, &h);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		n->blind = true;
		sync_tell(s, SYNC_UNREADABLE, n->path, NULL);
		return 1;
	}
	sha256_bytes(&h, n->digest);
	n->hashed = true;
	return 0;
}

/* Whether the contents of a file or link are as before. Return 0 or 1, or -errno. */
static int here_has_before(struct sync *s, struct sync_node *n)
{
	struct sync_before *b = &n->before;
	int r;

	if (n->here.type == SYNC_DIRECTORY)
		return 1;
	if (n->here.size != b->size)
		return 0;
	if (sync_time_eq(n->here.mtime, b->here) && !b->unsure_here)
		return 1;
	r = here_digest(s, n);
	if (r < 0)
		return r;
	if (r == 1)
		return 1;
	if (memcmp(n->digest, b->digest, SHA256_BYTES) != 0)
		return 0;
	b->here = n->here.mtime;
	b->unsure_here = sync_is_recent(b->here);
	return 1;
}

int here_side(struct sync *s, struct sync_node *n, enum sync_side *ret)
{
	const struct sync_before *b = &n->before;
	int r;

	if (b->type == SYNC_ABSENT || n->here.type == SYNC_ABSENT) {
		*ret = n->here.type != SYNC_ABSENT ? SYNC_NEW
		       : b->type != SYNC_ABSENT    ? SYNC_GONE
						   : SYNC_NEVER;
		return 0;
	}
	*ret = SYNC_CHANGED;
	if (b->type != n->here.type)
		return 0;
	r = here_has_before(s, n);
	if (r < 0)
		return r;
	n->mode_only = r == 1 && n->here.mode != b->mode;
	if (r == 1 && !n->mode_only)
		*ret = SYNC_SAME;
	return 0;
}
