/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a look: made before the room, and kept in a file for the process that takes over
 * after a crash. Each record in the file is a letter and its fields. Each field ends with a NUL,
 * since paths may hold any other byte. */
#include "base/fd.h"
#include "base/parse.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "fs/fswalk.h"
#include "workspace/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	READ_ONLY = 1, /* as written in a file */
	LINKED = 2,
	MAX_DIRS = 1000,         /* that are searched for files with other names */
	MAX_ENTRIES = 20 * 1000, /* of all directories together */
};

void look_done(struct look *l)
{
	for (size_t i = 0; i < l->mounts_n; i++) {
		fd_close(l->mounts[i].fd);
		free(l->mounts[i].source);
		free(l->mounts[i].target);
	}
	free(l->mounts);
	free(l->kept);
	strv_free(l->opened);
	strv_free(l->copied);
	*l = (struct look){0};
}

struct timespec look_now(void)
{
	struct timespec now;

	/* The kernel takes the times of inodes from this clock, so it is never ahead of them. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now;
}

void look_begin(struct look *l)
{
	l->since = look_now();
}

/* Takes fd. */
static int plan_add_mount(
	struct look *l, const char *source, const char *target, int fd, const struct stat *st)
{
	struct look_mount *more = reallocarray(l->mounts, l->mounts_n + 1, sizeof(*more));
	struct look_mount m = {.source = strdup(source),
		.target = strdup(target),
		.device = st->st_dev,
		.inode = st->st_ino,
		.fd = fd};

	if (more)
		l->mounts = more;
	if (!more || !m.source || !m.target) {
		fd_close(fd);
		free(m.source);
		free(m.target);
		return -ENOMEM;
	}
	l->mounts[l->mounts_n++] = m;
	return 0;
}

int look_add_mount(struct look *l, int fd, const char *source, const char *target)
{
	struct stat st;
	int own;

	if (fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return 0;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? -ENOMEM : plan_add_mount(l, source, target, own, &st);
}

static int plan_add_kept(struct look *l, const struct look_id *id)
{
	struct look_id *more = reallocarray(l->kept, l->kept_n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->kept = more;
	l->kept[l->kept_n++] = *id;
	return 0;
}

struct plan_search {
	size_t dirs, entries;
};

enum { PLAN_LINKED = 1 /* what ends a search: there is such a file, or it cannot be known */ };

static int plan_search_entry(void *user, const struct fswalk_entry *e)
{
	struct plan_search *p = user;
	struct stat st;

	p->entries++;
	if (e->type == DT_DIR)
		return ++p->dirs < MAX_DIRS ? FSWALK_INTO : PLAN_LINKED;
	return fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			       (S_ISREG(st.st_mode) && st.st_nlink > 1)
		       ? PLAN_LINKED
		       : 0;
}

static int plan_search_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	return PLAN_LINKED;
}

/* Finds out whether a file in a directory has another name. So it is if that cannot be known.
 * Returns 0 or -ENOMEM. */
static int plan_search(struct look *l, int dir, bool *ret)
{
	struct plan_search p = {0};
	struct fswalk_how how = {.levels = LOOK_MAX_DEPTH,
		.user = &p,
		.entry = plan_search_entry,
		.missed = plan_search_missed};
	int r;

	*ret = true;
	if (l->searched >= MAX_ENTRIES)
		return 0;
	how.names = MAX_ENTRIES - l->searched;
	r = fswalk(dir, "", &how);
	l->searched += p.entries;
	*ret = r != 0;
	return r == -ENOMEM ? r : 0;
}

int look_add_kept(struct look *l, int dir, const char *path, bool read_only)
{
	_cleanup_fd_ int below = path[0] ? fs_open_beneath(dir, path, O_PATH) : -1;
	int fd = path[0] ? below : dir;
	struct look_id id = {.read_only = read_only};
	struct stat st;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	id.device = st.st_dev;
	id.inode = st.st_ino;
	id.linked = S_ISREG(st.st_mode) && st.st_nlink > 1;
	if (read_only && S_ISDIR(st.st_mode))
		r = plan_search(l, fd, &id.linked);
	return r < 0 ? r : plan_add_kept(l, &id);
}

/* --- as a file --- */

static void plan_put(struct buf *out, int *error, struct str field)
{
	if (*error == 0)
		*error = buf_add_str(out, field);
	if (*error == 0)
		*error = buf_add_char(out, '\0');
}

static void plan_put_number(struct buf *out, int *error, uint64_t n)
{
	if (*error == 0)
		*error = buf_add_uint(out, n);
	plan_put(out, error, STR_NULL);
}

int look_write(const struct look *l, struct buf *out)
{
	int e = 0;

	plan_put(out, &e, STR("t"));
	plan_put_number(out, &e, (uint64_t)l->since.tv_sec);
	plan_put_number(out, &e, (uint64_t)l->since.tv_nsec);
	plan_put_number(out, &e, l->every);
	plan_put(out, &e, STR("i"));
	plan_put_number(out, &e, (uint64_t)l->init);
	plan_put_number(out, &e, l->start);
	plan_put(out, &e, STR("b"));
	plan_put(out, &e, str_from(l->boot));
	for (size_t i = 0; i < l->mounts_n; i++) {
		const struct look_mount *m = &l->mounts[i];

		plan_put(out, &e, STR("m"));
		plan_put_number(out, &e, m->device);
		plan_put_number(out, &e, m->inode);
		plan_put(out, &e, str_from(m->source));
		plan_put(out, &e, str_from(m->target));
	}
	for (size_t i = 0; i < l->kept_n; i++) {
		plan_put(out, &e, STR("k"));
		plan_put_number(out, &e, l->kept[i].device);
		plan_put_number(out, &e, l->kept[i].inode);
		plan_put_number(out, &e,
			(l->kept[i].read_only ? READ_ONLY : 0) | (l->kept[i].linked ? LINKED : 0));
	}
	for (size_t i = 0; l->opened && l->opened[i]; i++) {
		plan_put(out, &e, STR("o"));
		plan_put(out, &e, str_from(l->opened[i]));
	}
	for (size_t i = 0; l->copies && l->copied && l->copied[i]; i++) {
		plan_put(out, &e, STR("c"));
		plan_put(out, &e, str_from(l->copied[i]));
	}
	return e;
}

/* Takes the next field, which ends with its NUL. */
static const char *plan_take(struct str *rest)
{
	size_t n = str_chr(*rest, '\0');
	const char *field = rest->p;

	if (n >= rest->n)
		return NULL;
	*rest = str_from_index(*rest, n + 1);
	return field;
}

static bool plan_take_number(struct str *rest, uint64_t *ret)
{
	const char *field = plan_take(rest);

	return field && parse_u64(str_from(field), UINT64_MAX, ret) == 0;
}

static int plan_read_mount(struct look *l, struct str *rest)
{
	uint64_t device, inode;
	const char *source, *target;
	struct stat st;
	int fd;

	if (!plan_take_number(rest, &device) || !plan_take_number(rest, &inode))
		return -EINVAL;
	source = plan_take(rest);
	target = source ? plan_take(rest) : NULL;
	if (!target)
		return -EINVAL;
	fd = open(source, O_PATH | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_dev != device || st.st_ino != inode))
		fd = fd_close(fd);
	st.st_dev = device;
	st.st_ino = inode;
	return plan_add_mount(l, source, target, fd, &st);
}

static int plan_read_one(struct look *l, const char *kind, struct str *rest)
{
	uint64_t a, b, c;

	if (strcmp(kind, "m") == 0)
		return plan_read_mount(l, rest);
	if (strcmp(kind, "b") == 0) {
		const char *boot = plan_take(rest);

		snprintf(l->boot, sizeof(l->boot), "%s", boot ? boot : "");
		return boot ? 0 : -EINVAL;
	}
	if (strcmp(kind, "o") == 0 || strcmp(kind, "c") == 0) {
		const char *path = plan_take(rest);
		char ***list = kind[0] == 'o' ? &l->opened : &l->copied;

		return path ? strv_add(list, str_from(path)) : -EINVAL;
	}
	if (!plan_take_number(rest, &a) || !plan_take_number(rest, &b))
		return -EINVAL;
	if (strcmp(kind, "i") == 0) {
		l->init = (int)a;
		l->start = b;
		return 0;
	}
	if (!plan_take_number(rest, &c))
		return -EINVAL;
	if (strcmp(kind, "k") == 0)
		return plan_add_kept(l, &(struct look_id){a, b, c & READ_ONLY, c & LINKED});
	l->since = (struct timespec){.tv_sec = (time_t)a, .tv_nsec = (long)b};
	l->every = c != 0;
	return strcmp(kind, "t") == 0 ? 0 : -EINVAL;
}

int look_read(struct look *l, struct str text)
{
	int r = 0;

	l->again = true;
	while (r == 0 && text.n) {
		const char *kind = plan_take(&text);

		r = kind ? plan_read_one(l, kind, &text) : -EINVAL;
	}
	return r;
}
