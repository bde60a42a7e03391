/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/looks.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PLAN = 4 * 1024 * 1024, MAX_TOLD = 48 * 1024 * 1024, PATIENCE_MS = 3000 };
#define LOOKS_DIR ".planted" /* for all sandboxes: one file each, named by the id */

/* Return whether path lies below a mount that is inspected. */
static bool looks_covers(const struct look *l, const char *path)
{
	for (size_t i = 0; i < l->mounts_n; i++) {
		const char *below = fs_below(path, l->mounts[i].source);

		if (below && below[0])
			return true;
	}
	return false;
}

static int looks_plan_mount(
	struct look *l, const struct room_spec *spec, const struct room_mount *m)
{
	if (m->guard)
		return look_add_kept(
			l, spec->mounts[m->guard - 1].fd, room_spec_guarded(spec, m), m->ro);
	if (m->unobeyed)
		return 0;
	if (!m->ro && !(m->found && looks_covers(l, m->source)))
		return look_add_mount(l, m->fd, m->source, m->target);
	return m->found ? look_add_kept(l, m->fd, "", m->ro) : 0;
}

/* Whether records of worktrees beside this configuration are read-only. */
static bool looks_has_records(const struct room_spec *spec, const struct room_mount *config)
{
	for (size_t i = 0; i < spec->mounts_n; i++) {
		const struct room_mount *m = &spec->mounts[i];
		size_t n = strlen(config->source) - strlen(strrchr(config->source, '/'));

		if (m->guard == config->guard && m->ro &&
			strncmp(m->source, config->source, n) == 0 &&
			strncmp(m->source + n, "/worktrees/", strlen("/worktrees/")) == 0)
			return true;
	}
	return false;
}

static int looks_plan_config(struct carry *c, struct room_spec *spec, size_t i)
{
	struct room_mount *m = &spec->mounts[i];
	struct carry_ours ours;
	char hooks[64];

	if (!m->config || !m->guard)
		return 0;
	snprintf(hooks, sizeof(hooks), ROOM_GIT_VIEW, i);
	ours = (struct carry_ours){.hooks = hooks, .records = looks_has_records(spec, m)};
	return carry_add(c, spec->mounts[m->guard - 1].fd, room_spec_guarded(spec, m), m->source, i,
		&ours, &m->text, &m->own_hooks);
}

/* What git may be kept from changing. */
static int looks_plan_guard(struct carry *c, const struct room_spec *spec, size_t i)
{
	const struct room_mount *m = &spec->mounts[i], *around;
	_cleanup_(freep) char *also = NULL;
	int r;

	if (!m->guard || !m->ro || m->config)
		return 0;
	around = &spec->mounts[m->guard - 1];
	r = stuck_add(&c->stuck, m->source, m->target);
	if (r == 0 && around->also) {
		also = fs_join(around->also, room_spec_guarded(spec, m));
		r = also ? stuck_add(&c->stuck, m->source, also) : -ENOMEM;
	}
	return r;
}

int looks_plan(struct look *l, struct carry *c, struct room_spec *spec, struct cloche_err *err)
{
	int r = 0;

	look_begin(l);
	l->every = spec->nested;
	for (size_t i = 0; r == 0 && i < spec->mounts_n; i++)
		r = looks_plan_mount(l, spec, &spec->mounts[i]);
	for (size_t i = 0; r == 0 && i < spec->mounts_n; i++)
		r = looks_plan_config(c, spec, i);
	for (size_t i = 0; r == 0 && c->n && i < spec->mounts_n; i++)
		r = looks_plan_guard(c, spec, i);
	if (r == 0)
		r = strv_copy(spec->opened, &l->opened);
	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = strv_add(&l->copied, str_from(c->files[i].path));
	return r < 0 ? err_nomem(err) : 0;
}

int looks_note(
	struct look *l, struct sandbox_dir *d, const char *id, pid_t init, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_PLAN);
	int r;

	if (l->mounts_n == 0)
		return 0;
	l->init = init;
	l->start = program_start_time(init);
	program_boot_id(l->boot);
	if (look_write(l, &b) < 0)
		return err_nomem(err);
	r = sandbox_dir_make(d, id, err);
	if (r == 0)
		r = sandbox_dir_failed(
			d, fs_write_atomic(d->fd, RUNDIR_LOOK, buf_str(&b), 0600, false, err), err);
	return r;
}

/* Keep the findings for the process that will show them. */
static int looks_keep(
	int base, const char *id, const struct look_told *told, pid_t owner, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_TOLD);
	_cleanup_(buf_donep) struct buf before = BUF_INIT(MAX_TOLD / 2);
	_cleanup_fd_ int dir = -1;
	struct str old;

	if (told->told == 0)
		return 0;
	if (mkdirat(base, LOOKS_DIR, 0700) == 0 || errno == EEXIST)
		dir = openat(base, LOOKS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Keep the findings of an earlier inspection that was killed before it finished. */
	if (dir >= 0 && fd_read_file(dir, id, &before, NULL) < 0)
		buf_clear(&before);
	old = str_from_index(buf_str(&before), str_chr(buf_str(&before), '\n') + 1);
	if (dir < 0 ||
		buf_printf(&b, "{\"owner\":%d,\"owner_start\":%llu,\"more\":%u}\n", (int)owner,
			owner ? (unsigned long long)program_start_time(owner) : 0,
			told->more) < 0 ||
		buf_add_str(&b, old) < 0 || buf_add_str(&b, buf_str(&told->text)) < 0 ||
		fs_write_atomic(dir, id, buf_str(&b), 0600, false, NULL) < 0)
		return err_set(err, E_SYSTEM,
			"%u things that sandbox %s left in granted directories cannot be reported: "
			"the runtime directory cannot be written",
			told->told, id);
	return 0;
}

/* Look, and keep what is found. Once only, even if the removal of the directory is interrupted. */
static int looks_do(const struct look *l, struct carry *c, int copies, int base, int dir,
	const char *id, pid_t owner, struct cloche_err *err)
{
	struct look_told told = {.text = BUF_INIT(0)};
	int r = look_through(l, &told), kept;

	/* Last, as it changes files that were looked at. */
	if (copies >= 0 && r == 0)
		r = carry_over(c, copies, ROOM_GIT_HOOKS "/", &told);
	else if (!c && r == 0)
		r = carry_lost(l->copied, &told);
	if (r < 0)
		r = err_set(err, E_NO_MEMORY,
			"out of memory while looking through what sandbox %s left in granted "
			"directories",
			id);
	kept = looks_keep(base, id, &told, owner, err);
	buf_done(&told.text);
	unlinkat(dir, RUNDIR_LOOK, 0);
	return r < 0 ? r : kept;
}

int looks_through(const struct look *l, struct carry *c, int copies, struct sandbox_dir *d,
	pid_t owner, struct cloche_err *err)
{
	if (l->mounts_n == 0 || d->fd < 0)
		return 0;
	return looks_do(l, c, copies, d->base, d->fd, d->id, owner, err);
}

int looks_meanwhile(
	const struct look *l, const struct sandbox_dir *d, pid_t owner, struct cloche_err *err)
{
	struct look_told told = {.text = BUF_INIT(0)};
	int r, kept;

	if (l->mounts_n == 0 || d->fd < 0)
		return 0;
	r = look_through(l, &told);
	if (r < 0)
		r = err_set(err, E_NO_MEMORY, "out of memory while looking through what came back");
	kept = looks_keep(d->base, d->id, &told, owner, err);
	buf_done(&told.text);
	return r < 0 ? r : kept;
}

/* The room dies with its supervisor, but not at the same moment. */
static void looks_await_death(const struct look *l)
{
	_cleanup_fd_ int fd = program_end(l->init, l->start, l->boot);

	if (fd >= 0)
		(void)!job_wait_fd(fd, POLLIN, PATIENCE_MS);
}

int looks_after_crash(int base, int dir, const char *id, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_PLAN);
	_cleanup_(look_donep) struct look l = {0};

	if (fd_read_file(dir, RUNDIR_LOOK, &b, NULL) < 0 || look_read(&l, buf_str(&b)) < 0)
		return 0;
	looks_await_death(&l);
	return looks_do(&l, NULL, -1, base, dir, id, 0, err);
}

/* Return whether the owner in the first line lives. */
static bool looks_owner_lives(struct str text)
{
	_cleanup_(freep) char *line = str_dup(str_prefix(text, str_chr(text, '\n')));
	unsigned long long start = 0;
	int owner = 0;

	return line && sscanf(line, "{\"owner\":%d,\"owner_start\":%llu", &owner, &start) == 2 &&
	       owner > 0 && program_start_time(owner) == start && start != 0;
}

static void looks_take_one(
	int dir, const char *id, bool asked, bool forget, looks_fn fn, void *user)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_TOLD);
	_cleanup_fd_ int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	/* If two processes come at the same time, only one shows it. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
		!S_ISREG(st.st_mode) || fd_read_to_end(fd, &b) < 0)
		return;
	if (!asked && looks_owner_lives(buf_str(&b)))
		return;
	fn(user, id, buf_str(&b));
	if (forget)
		unlinkat(dir, id, 0);
}

void looks_take(int base, const char *id, bool forget, looks_fn fn, void *user)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(base, LOOKS_DIR);
	const struct dirent *e;

	if (list && id)
		looks_take_one(dirfd(list), id, true, forget, fn, user);
	while (list && !id && (e = fs_list_next(list)))
		if (rundir_is_id(str_from(e->d_name)))
			looks_take_one(dirfd(list), e->d_name, false, forget, fn, user);
}
