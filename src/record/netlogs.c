/* SPDX-License-Identifier: Apache-2.0 */
#include "record/netlogs.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "ipc/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".jsonl"
#define ID_START "sandbox-"
enum {
	SANDBOX_NAME_MAX = RUNDIR_NAME_BYTES,
	FILE_MAX = RUNDIR_ID_BYTES + 1 + SANDBOX_NAME_MAX + sizeof(SUFFIX)
};

/* The name of a file, taken apart. */
struct netlog_name {
	struct str id, name;
};

static bool netlog_name_read(struct str file, struct netlog_name *ret)
{
	struct str rest;

	if (file.n >= FILE_MAX || !str_ends(file, STR(SUFFIX)))
		return false;
	file.n -= sizeof(SUFFIX) - 1;
	rest = str_from_index(file, RUNDIR_ID_BYTES);
	*ret = (struct netlog_name){.id = str_prefix(file, RUNDIR_ID_BYTES)};
	if (rest.n > 0 && rest.p[0] == '@')
		ret->name = str_from_index(rest, 1);
	return rundir_is_id(ret->id) && (rest.n == 0 || rest.p[0] == '@');
}

static int netlogs_path(char **ret, struct cloche_err *err)
{
	return statedir_path(STATEDIR_NETLOGS, ret, err);
}

static int netlogs_open(struct cloche_err *err)
{
	return statedir_open(STATEDIR_NETLOGS, NULL, err);
}

/* Call fn for each log whose file begins so. Any result but 0 ends the listing and is returned. */
static int netlogs_each(int dir, struct str start,
	int (*fn)(int dir, const char *file, const struct netlog_name *n, void *user), void *user)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(dir, ".");
	const struct dirent *e;
	int r = 0;

	while (d && r == 0 && (e = fs_list_next(d))) {
		struct str file = str_from(e->d_name);
		struct netlog_name n;

		if (str_starts(file, start) && netlog_name_read(file, &n))
			r = fn(dir, e->d_name, &n, user);
	}
	return r;
}

static uint64_t netlog_time(int dir, const char *file)
{
	struct stat st;

	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

bool netlog_is_open(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	(void)flock(fd, LOCK_UN);
	return false;
}

/* --- removing --- */

struct aged {
	uint64_t time;
	char file[FILE_MAX + 1];
};

struct pruning {
	struct aged v[2 * (NETLOGS_KEPT + NETLOGS_SLACK)]; /* if there are more, the rest waits */
	size_t n;
};

static int prune_count(int dir, const char *file, const struct netlog_name *n, void *user)
{
	return ++*(size_t *)user > NETLOGS_KEPT + NETLOGS_SLACK;
}

static int prune_add(int dir, const char *file, const struct netlog_name *n, void *user)
{
	struct pruning *p = user;
	_cleanup_fd_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || netlog_is_open(fd))
		return 0;
	p->v[p->n] = (struct aged){.time = netlog_time(dir, file)};
	snprintf(p->v[p->n].file, sizeof(p->v[p->n].file), "%s", file);
	return ++p->n == ARRAY_SIZE(p->v);
}

static int aged_compare(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Logs of sandboxes that run do not count. */
static void netlogs_prune(int dir)
{
	struct pruning *p;
	size_t n = 0;

	if (netlogs_each(dir, STR(""), prune_count, &n) == 0)
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	(void)netlogs_each(dir, STR(""), prune_add, p);
	qsort(p->v, p->n, sizeof(p->v[0]), aged_compare);
	for (size_t i = 0; i + NETLOGS_KEPT < p->n; i++)
		(void)unlinkat(dir, p->v[i].file, 0);
	free(p);
}

static int remove_of(int dir, const char *file, const struct netlog_name *n, void *user)
{
	if (str_eq(n->id, str_from(user)))
		(void)unlinkat(dir, file, 0);
	return 0;
}

void netlogs_remove(const char *id)
{
	_cleanup_(freep) char *path = NULL, *copy = strdup(id);
	_cleanup_fd_ int dir = -1;

	if (!copy || netlogs_path(&path, NULL) < 0)
		return;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		(void)netlogs_each(dir, str_from(id), remove_of, copy);
}

/* --- creating --- */

int netlogs_create(const char *id, const char *name, struct cloche_err *err)
{
	_cleanup_fd_ int dir = netlogs_open(err), fd = -1;
	char file[FILE_MAX + 1];
	bool named = name && strlen(name) <= SANDBOX_NAME_MAX && !strchr(name, '/');

	if (dir < 0)
		return dir;
	netlogs_prune(dir);
	snprintf(file, sizeof(file), "%s%s%s" SUFFIX, id, named ? "@" : "", named ? name : "");
	fd = fd_lift(openat(dir, file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (fd < 0)
		return err_sys(err, errno, "create the network log %s", file);
	/* Only somebody who looks whether it is locked can be in the way, for a moment. */
	(void)flock(fd, LOCK_SH | LOCK_NB);
	return TAKE_FD(fd);
}

/* --- finding --- */

enum { MATCH_NONE, MATCH_BEGINNING, MATCH_NAME, MATCH_ID };

struct finding {
	struct str sandbox;
	int match;
	uint64_t time;
	bool several; /* of MATCH_BEGINNING */
	char file[FILE_MAX + 1];
};

static int netlog_match(struct str sandbox, const struct netlog_name *n)
{
	struct str rest = str_from_index(n->id, sizeof(ID_START) - 1);

	if (str_eq(n->id, sandbox))
		return MATCH_ID;
	if (n->name.n > 0 && str_eq(n->name, sandbox))
		return MATCH_NAME;
	if (sandbox.n > sizeof(ID_START) - 1 && str_starts(n->id, sandbox))
		return MATCH_BEGINNING;
	return sandbox.n > 0 && str_starts(rest, sandbox) ? MATCH_BEGINNING : MATCH_NONE;
}

static int find_better(int dir, const char *file, const struct netlog_name *n, void *user)
{
	struct finding *f = user;
	int match = netlog_match(f->sandbox, n);
	uint64_t time = match != MATCH_NONE ? netlog_time(dir, file) : 0;

	if (match == MATCH_NONE || match < f->match)
		return 0;
	if (match == f->match) {
		f->several |= match == MATCH_BEGINNING;
		if (time < f->time)
			return 0;
	}
	f->several &= match == f->match;
	f->match = match;
	f->time = time;
	snprintf(f->file, sizeof(f->file), "%s", file);
	return match == MATCH_ID;
}

int netlogs_find(const char *sandbox, char **ret, struct cloche_err *err)
{
	struct finding f = {.sandbox = str_from(sandbox)};
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int dir = -1;
	int r = netlogs_path(&path, err);

	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		(void)netlogs_each(
			dir, rundir_is_id(f.sandbox) ? f.sandbox : STR(""), find_better, &f);
	if (f.several)
		return err_set(
			err, E_USAGE, "several network logs are of a sandbox %s...", sandbox);
	if (f.match == MATCH_NONE) {
		err_set(err, E_NOT_FOUND, "there is no network log of \"%s\"", sandbox);
		err_hint(err,
			"a sandbox has one if it has a network (--allow, --allowlist); the "
			"logs of the last %d that have ended are kept",
			NETLOGS_KEPT);
		return -E_NOT_FOUND;
	}
	*ret = fs_join(path, f.file);
	return *ret ? 0 : err_nomem(err);
}
