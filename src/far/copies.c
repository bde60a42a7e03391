/* SPDX-License-Identifier: Apache-2.0 */
#include "far/copies.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of cloche-sync. */
enum { FD_WORKER = 3, FD_DIRECTORY, FD_STATE };
enum {
	LOOK_MS = 200,
	PULL_SEC =
		3600, /* for all that comes back of a mount: a place that trickles keeps nobody */
};

/* Note the guards of mount i of spec: what this machine obeys does not come back. */
static int copies_note_guards(struct far_mount *m, const struct room_spec *spec, size_t i)
{
	for (size_t k = i + 1; k < spec->mounts_n; k++) {
		const struct room_mount *guard = &spec->mounts[k];

		if (guard->guard == i + 1 && (guard->ro || guard->hooks || guard->config) &&
			strv_add(&m->kept, str_from(room_spec_guarded(spec, guard))) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int copies_note(struct far_copies *f, const struct room_spec *spec, size_t i,
	uint32_t number, struct cloche_err *err)
{
	const struct room_mount *from = &spec->mounts[i];
	struct far_mount *m = &f->mounts[f->mounts_n];
	struct stat st;

	if (from->fd < 0 || fstat(from->fd, &st) < 0)
		return err_sys(err, from->fd < 0 ? -from->fd : errno, "open %s", from->source);
	if (!S_ISDIR(st.st_mode)) {
		err_set(err, E_UNSUPPORTED,
			"%s is no directory: a sandbox elsewhere gets copies of directories alone",
			from->source);
		err_hint(err, "mount the directory that it is in");
		return -E_UNSUPPORTED;
	}
	*m = (struct far_mount){.number = number, .dir = -1, .state = -1, .ro = from->ro};
	f->mounts_n++;
	m->dir = fcntl(from->fd, F_DUPFD_CLOEXEC, 3);
	m->state = memfd_create("sync", MFD_CLOEXEC);
	if (m->dir < 0 || m->state < 0)
		return err_sys(err, errno, "prepare the copy of %s", from->source);
	return copies_note_guards(m, spec, i) < 0 ? err_nomem(err) : 0;
}

int far_copies_init(struct far_copies *f, const struct room_spec *spec, struct cloche_err *err)
{
	uint32_t number = 0;
	int e = 0;

	*f = (struct far_copies){.mounts = calloc(spec->mounts_n + 1, sizeof(*f->mounts)),
		.id = strdup(spec->id),
		.what = strdup(spec->sync ? spec->sync : "all")};
	if (!f->mounts || !f->id || !f->what)
		return err_nomem(err);
	for (size_t i = 0; i < spec->mounts_n && e == 0; i++)
		if (!spec->mounts[i].guard)
			e = copies_note(f, spec, i, number++, err);
	return e;
}

void far_copies_done(struct far_copies *f)
{
	for (size_t i = 0; i < f->mounts_n; i++) {
		fd_close(f->mounts[i].dir);
		fd_close(f->mounts[i].state);
		strv_free(f->mounts[i].kept);
	}
	free(f->mounts);
	free(f->id);
	free(f->what);
	*f = (struct far_copies){0};
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

/* Run cloche-sync for a mount, with what the person keeps as further arguments. */
static int copies_start(const struct far_copies *f, const struct far_mount *m, const char *verb,
	int sock, pid_t *ret, int *ret_pidfd, struct cloche_err *err)
{
	_cleanup_(freep) const char **argv = calloc(5 + strv_count(m->kept), sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return err_nomem(err);
	argv[n++] = "cloche-sync";
	argv[n++] = verb;
	argv[n++] = f->what;
	argv[n++] = f->id;
	for (size_t i = 0; m->kept && m->kept[i]; i++)
		argv[n++] = m->kept[i];
	return program_start(&(struct program_spawn){.argv = argv,
				     .fds = (const struct program_fd[]){{sock, FD_WORKER},
					     {m->dir, FD_DIRECTORY}, {m->state, FD_STATE}},
				     .fds_n = 3,
				     .stdio = {-1, -1, 2}},
		ret, ret_pidfd, err);
}

static int copies_copy(struct far_copies *f, const struct far_mount *m, const char *verb,
	const struct room_spec *spec, far_copies_fn connect, void *user, struct cloche_err *err)
{
	_cleanup_fd_ int theirs = -1, pidfd = -1;
	int pair[2], status, e = fd_socketpair(SOCK_STREAM, pair);
	pid_t pid;

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	theirs = pair[1];
	e = connect(user, m->number, pair[0]);
	if (e < 0)
		return err_sys(err, -e, "reach the files of the other machine");
	e = copies_start(f, m, verb, theirs, &pid, &pidfd, err);
	theirs = fd_close(theirs);
	if (e < 0)
		return e;
	status = copies_wait(pid, pidfd, spec);
	/* It has said why. */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : err_set(err, E_BROKEN, "files could not be copied %s the other machine",
				 strcmp(verb, "push") == 0 ? "to" : "from");
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
