/* SPDX-License-Identifier: Apache-2.0 */
#include "far/copies.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "far/kept.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of cloche-sync. */
enum { FD_WORKER = 3, FD_DIRECTORY, FD_STATE, FD_ONE };
enum {
	LOOK_MS = 200,
	PULL_SEC =
		3600,   /* for all that comes back of a mount: a place that trickles keeps nobody */
	TIDY_MS = 8000, /* for a copy that is told to end, whatever the other machine says */
};

/* Note the guards of mount i of spec: what this machine obeys does not come back, and what is
 * hidden does not go there. */
static int copies_note_guards(struct far_mount *m, const struct room_spec *spec, size_t i)
{
	for (size_t k = i + 1; k < spec->mounts_n; k++) {
		const struct room_mount *guard = &spec->mounts[k];

		const char *path = guard->guard == i + 1 ? room_spec_guarded(spec, guard) : NULL;

		if (path && guard->hidden && strv_add(&m->hidden, str_from(path)) < 0)
			return -ENOMEM;
		if (path && (guard->ro || guard->hooks || guard->config) &&
			strv_add(&m->kept, str_from(path)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A large program may be there already. It stays there afterwards, unlike what else is mounted,
 * which may be anything of the person's. */
static bool copies_is_kept(const struct far_copies *f, const struct stat *st)
{
	return (st->st_mode & S_IXUSR) && st->st_size >= FAR_KEPT_MIN &&
	       strcmp(f->what, "none") != 0;
}

/* Find the directory of a file that may be written to: what comes back gets its name there. A name
 * that is no longer the file's own is refused (INV-NAMED-ONCE). */
static int copies_open_one(struct far_mount *m, const struct room_mount *from,
	const struct stat *st, struct cloche_err *err)
{
	char path[PATH_MAX], *slash;
	struct stat named;

	m->one = fcntl(from->fd, F_DUPFD_CLOEXEC, 3);
	if (m->one < 0 || fd_path(from->fd, path) < 0)
		return err_sys(err, errno, "open %s", from->source);
	slash = strrchr(path, '/');
	m->one_name = slash ? str_dup(str_from(slash + 1)) : NULL;
	if (!m->one_name)
		return err_nomem(err);
	slash[slash == path] = '\0';
	m->dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m->dir < 0 || fstatat(m->dir, m->one_name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		named.st_dev != st->st_dev || named.st_ino != st->st_ino)
		return err_set(err, E_BUSY, "%s was moved or replaced meanwhile", from->source);
	if (faccessat(m->dir, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	err_set(err, E_DENIED,
		"%s cannot come back from a sandbox elsewhere: you may not write to its directory",
		from->source);
	err_hint(err, "mount it read-only (\"%s:%s:ro\")", from->source, from->target);
	return -E_DENIED;
}

static int copies_open(struct far_mount *m, const struct room_mount *from, const struct stat *st,
	struct cloche_err *err)
{
	if (S_ISREG(st->st_mode) && !from->ro)
		return copies_open_one(m, from, st, err);
	/* Who has a lease of the file could hold up the opening. */
	m->file = S_ISREG(st->st_mode);
	m->dir = m->file ? fd_open_again(from->fd, O_RDONLY | O_NONBLOCK)
			 : fcntl(from->fd, F_DUPFD_CLOEXEC, 3);
	return m->dir < 0 ? err_sys(err, errno, "open %s", from->source) : 0;
}

static int copies_note(struct far_copies *f, const struct room_spec *spec, size_t i,
	uint32_t number, struct cloche_err *err)
{
	const struct room_mount *from = &spec->mounts[i];
	struct far_mount *m = &f->mounts[f->mounts_n];
	struct stat st;

	if (from->fd < 0 || fstat(from->fd, &st) < 0)
		return err_sys(err, from->fd < 0 ? -from->fd : errno, "open %s", from->source);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, E_UNSUPPORTED,
			"%s is neither a directory nor a file: a sandbox elsewhere has no copy of "
			"it",
			from->source);
	*m = (struct far_mount){
		.number = number, .dir = -1, .one = -1, .state = -1, .ro = from->ro};
	f->mounts_n++;
	if (copies_open(m, from, &st, err) < 0)
		return -err->code;
	/* If it cannot be read, copying it says so. */
	if (m->file && copies_is_kept(f, &st) && far_kept_name(m->dir, m->name) < 0)
		m->name[0] = '\0';
	m->state = memfd_create("sync", MFD_CLOEXEC);
	if (m->state < 0)
		return err_sys(err, errno, "prepare the copy of %s", from->source);
	return copies_note_guards(m, spec, i) < 0 ? err_nomem(err) : 0;
}

/* Whether the inner mount lies where the outer one would show the same files anyway. */
static bool copies_is_in_place(
	const struct room_mount *outer, const struct room_mount *inner, const char *below)
{
	const char *at = fs_below(inner->target, outer->target);
	const char *also = outer->also ? fs_below(inner->target, outer->also) : NULL;

	return (at && strcmp(at, below) == 0) || (also && strcmp(also, below) == 0);
}

/* Whether what a command changes by the path of the inner mount would be missed by that of the
 * outer one. Nobody looks by another path for what cloche has mounted by itself, as the state of an
 * agent, and what can only be read is known to be as it was at the beginning. */
static bool copies_overlap(const struct room_mount *outer, const struct room_mount *inner)
{
	char around[PATH_MAX], path[PATH_MAX];
	const char *below;

	if (outer->guard || inner->guard || inner->found || inner->ro ||
		fd_path(outer->fd, around) < 0 || fd_path(inner->fd, path) < 0)
		return false;
	below = fs_below(path, around);
	return below && !copies_is_in_place(outer, inner, below);
}

/* Each mount has copies of its own, so what changes by one of its paths would not be seen by the
 * others, as it is on this machine. */
static int copies_check_apart(const struct room_spec *spec, struct cloche_err *err)
{
	for (size_t i = 0; i < spec->mounts_n; i++)
		for (size_t k = 0; k < spec->mounts_n; k++) {
			const struct room_mount *outer = &spec->mounts[i],
						*inner = &spec->mounts[k];

			if (i == k || !copies_overlap(outer, inner))
				continue;
			err_set(err, E_UNSUPPORTED,
				"%s is at %s and a part of what is at %s: a sandbox "
				"elsewhere would have two copies of it",
				inner->source, inner->target, outer->target);
			err_hint(err, "mount it once, or at %s read-only", inner->target);
			return -E_UNSUPPORTED;
		}
	return 0;
}

int far_copies_init(struct far_copies *f, const struct room_spec *spec, struct cloche_err *err)
{
	uint32_t number = 0;
	int e;

	*f = (struct far_copies){.mounts = calloc(spec->mounts_n + 1, sizeof(*f->mounts)),
		.id = strdup(spec->id),
		.what = strdup(spec->sync ? spec->sync : "all")};
	if (!f->mounts || !f->id || !f->what)
		return err_nomem(err);
	e = copies_check_apart(spec, err);
	for (size_t i = 0; i < spec->mounts_n && e == 0; i++)
		if (!spec->mounts[i].guard)
			e = copies_note(f, spec, i, number++, err);
	return e;
}

int far_copies_names(const struct far_copies *f, struct buf *ret)
{
	int r = 0;

	for (size_t i = 0; i < f->mounts_n && r == 0; i++)
		r = buf_printf(ret, "%s\n", f->mounts[i].name);
	return r;
}

void far_copies_done(struct far_copies *f)
{
	for (size_t i = 0; i < f->mounts_n; i++) {
		fd_close(f->mounts[i].dir);
		fd_close(f->mounts[i].one);
		free(f->mounts[i].one_name);
		fd_close(f->mounts[i].state);
		strv_free(f->mounts[i].kept);
		strv_free(f->mounts[i].hidden);
	}
	free(f->mounts);
	free(f->id);
	free(f->what);
	*f = (struct far_copies){0};
}

static int copies_failed(const char *verb, struct cloche_err *err)
{
	return err_set(err, E_BROKEN, "files could not be copied %s the other machine",
		strcmp(verb, "push") == 0 ? "to" : "from");
}

/* Whether the copy is no longer worth waiting for. spec: of a room that is being made, or NULL. */
static bool copies_is_hopeless(const struct room_spec *spec, uint64_t until)
{
	if (spec && spec->given_up)
		return spec->given_up(spec->born_user);
	return !spec && clock_mono_usec() > until;
}

/* Wait for the program, or kill it. Return its status. */
static int copies_wait(pid_t pid, int pidfd, const struct room_spec *spec)
{
	uint64_t until = clock_mono_usec() + PULL_SEC * USEC_PER_SEC;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int status = 0;

	while (job_wait(&p, 1, LOOK_MS) == 0)
		if (copies_is_hopeless(spec, until)) {
			kill(pid, SIGKILL);
			break;
		}
	(void)!job_wait_child(pid, &status);
	return status;
}

/* Run cloche-sync for a mount, with the number of hidden files, these, and what the person keeps as
 * further arguments, or with the names of a file. out: where its lines go; -1: nowhere, and it says
 * its sentences itself. */
static int copies_spawn(const struct far_copies *f, const struct far_mount *m, const char *verb,
	int sock, int out, pid_t *ret, int *ret_pidfd, struct cloche_err *err)
{
	size_t hidden = strv_count(m->hidden), n = 0;
	_cleanup_(freep) const char **argv =
		calloc(9 + hidden + strv_count(m->kept), sizeof(*argv));
	char count[16], name[16];

	if (!argv)
		return err_nomem(err);
	snprintf(name, sizeof(name), "%s%s", verb, m->file ? "-file" : m->one_name ? "-one" : "");
	argv[n++] = "cloche-sync";
	argv[n++] = name;
	argv[n++] = f->what;
	argv[n++] = f->id;
	snprintf(count, sizeof(count), "%zu", hidden);
	argv[n++] = count;
	for (size_t i = 0; i < hidden; i++)
		argv[n++] = m->hidden[i];
	for (size_t i = 0; m->kept && m->kept[i]; i++)
		argv[n++] = m->kept[i];
	if (m->one_name)
		argv[n++] = m->one_name;
	if (m->file || m->one_name)
		argv[n++] = FAR_FILE;
	if (m->name[0])
		argv[n++] = "kept";
	return program_start(
		&(struct program_spawn){.argv = argv,
			.fds = (const struct program_fd[]){{sock, FD_WORKER},
				{m->dir, FD_DIRECTORY}, {m->state, FD_STATE}, {m->one, FD_ONE}},
			.fds_n = m->one < 0 ? 3 : 4,
			.stdio = {-1, out, out < 0 ? 2 : -1}},
		ret, ret_pidfd, err);
}

/* The same, connected with a file worker there. */
static int copies_start(const struct far_copies *f, const struct far_mount *m, const char *verb,
	int out, far_copies_fn connect, void *user, pid_t *ret, int *ret_pidfd,
	struct cloche_err *err)
{
	_cleanup_fd_ int theirs = -1;
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	theirs = pair[1];
	e = connect(user, m->number, pair[0]);
	if (e < 0)
		return err_sys(err, -e, "reach the files of the other machine");
	return copies_spawn(f, m, verb, theirs, out, ret, ret_pidfd, err);
}

static bool copies_is_done(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int copies_copy(struct far_copies *f, const struct far_mount *m, const char *verb,
	const struct room_spec *spec, far_copies_fn connect, void *user, struct cloche_err *err)
{
	_cleanup_fd_ int pidfd = -1;
	pid_t pid;
	int e = copies_start(f, m, verb, -1, connect, user, &pid, &pidfd, err);

	if (e < 0)
		return e;
	/* If it fails, it has said why. */
	return copies_is_done(copies_wait(pid, pidfd, spec)) ? 0 : copies_failed(verb, err);
}

int far_copies_push(struct far_copies *f, const struct room_spec *spec, far_copies_fn connect,
	void *user, struct cloche_err *err)
{
	int e = 0;

	for (size_t i = 0; i < f->mounts_n && e == 0; i++)
		e = copies_copy(f, &f->mounts[i], "push", spec, connect, user, err);
	return e;
}

int far_copies_pull(struct far_copies *f, far_copies_fn connect, void *user, struct cloche_err *err)
{
	int e = 0;

	for (size_t i = 0; i < f->mounts_n; i++)
		if (!f->mounts[i].ro) {
			int one = copies_copy(f, &f->mounts[i], "pull", NULL, connect, user, err);

			e = e < 0 ? e : one;
		}
	return e;
}

/* --- both ways, while the room lives --- */

static const char *copies_verb(const struct far_sync *s)
{
	return s->is_push ? "push" : "pull";
}

/* Begin with the next mount that can change. */
static void copies_settle(struct far_copies *f)
{
	struct far_sync *s = &f->sync;

	while (s->at < f->mounts_n && f->mounts[s->at].file)
		s->at++;
	s->is_push = s->at < f->mounts_n && f->mounts[s->at].ro;
}

/* Go to the next copy: each mount is pulled, if it may be written to, and then pushed. A mount
 * whose pull failed is left alone, so that nothing goes there that did not see what changed there.
 * One file is what is mounted there, so nothing can take its place. */
static void copies_advance(struct far_copies *f, bool failed)
{
	struct far_sync *s = &f->sync;

	if (!s->is_push && !failed && !f->mounts[s->at].one_name) {
		s->is_push = true;
		return;
	}
	s->at++;
	copies_settle(f);
}

/* The copy that was on its way has ended. */
static void copies_reap(struct far_copies *f)
{
	struct far_sync *s = &f->sync;
	int status = -1;
	bool failed;

	if (s->pid <= 0)
		return;
	(void)!job_wait_child(s->pid, &status);
	s->pid = 0;
	s->pidfd = fd_close(s->pidfd);
	failed = !copies_is_done(status);
	if (failed && s->why.code == 0)
		(void)copies_failed(copies_verb(s), &s->why);
	copies_advance(f, failed);
}

static int copies_begin(struct far_copies *f, struct cloche_err *err)
{
	f->sync = (struct far_sync){.pidfd = -1};
	if (strcmp(f->what, "none") == 0)
		return err_set(err, E_UNSUPPORTED,
			"the sandbox was started with --sync none: nothing is copied");
	copies_settle(f);
	if (f->sync.at == f->mounts_n)
		return err_set(err, E_UNSUPPORTED,
			"the sandbox has no directory of this machine, and no file to be written: "
			"there is nothing to be copied");
	return 0;
}

/* Forget how it went, for the next one. */
static int copies_finish(struct far_copies *f, struct cloche_err *err)
{
	struct cloche_err why = f->sync.why;
	bool is_stopped = f->sync.is_stopped;

	f->sync = (struct far_sync){0};
	if (is_stopped)
		return err_set(err, E_CANCELLED, "the copying was stopped");
	if (why.code && err)
		*err = why;
	return -why.code;
}

int far_copies_sync(struct far_copies *f, int out, int *ret_fd, far_copies_fn connect, void *user,
	struct cloche_err *err)
{
	struct far_sync *s = &f->sync;
	int e = s->pid > 0 ? 0 : copies_begin(f, err);

	if (e < 0)
		return e;
	copies_reap(f);
	while (s->at < f->mounts_n && !s->is_stopped) {
		struct cloche_err why = CLOCHE_ERR_INIT;

		e = copies_start(f, &f->mounts[s->at], copies_verb(s), out, connect, user, &s->pid,
			&s->pidfd, &why);
		if (e == 0) {
			*ret_fd = s->pidfd;
			return 1;
		}
		s->pid = 0;
		if (s->why.code == 0)
			s->why = why;
		copies_advance(f, true);
	}
	return copies_finish(f, err);
}

void far_copies_sync_stop(struct far_copies *f, bool now)
{
	f->sync.is_stopped = true;
	if (f->sync.pid > 0)
		kill(f->sync.pid, now ? SIGKILL : SIGTERM);
}

void far_copies_sync_end(struct far_copies *f)
{
	struct pollfd p = {.fd = f->sync.pidfd, .events = POLLIN};

	if (f->sync.pid <= 0)
		return;
	far_copies_sync_stop(f, false);
	if (job_wait(&p, 1, TIDY_MS) <= 0)
		far_copies_sync_stop(f, true);
	copies_reap(f);
	(void)copies_finish(f, NULL);
}
