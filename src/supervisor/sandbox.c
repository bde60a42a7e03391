/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NOTHING-OUTLIVES): START makes everything in one go, in an order that
 * lets slow steps run in parallel: first the broker, then the room (which needs the broker's
 * certificate only in its last step), then the first process, and only after that the gateway,
 * whose listeners already exist, the records and the control socket, which nothing waits for.
 * Before the room is made, only those things are recorded that could outlive us.
 *
 * The end always takes the same path, whatever the cause: sandbox_end (TERM, a grace period),
 * sandbox_kill (KILL to process 1, which kills the whole pid namespace), process 1 is reaped, the
 * helpers end, usage is read, clients get ENDED, and then directories and cgroups are removed.
 * Process 1 can be reaped only after every other process of its room, so at ENDED nothing of the
 * room runs any more. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/utf8.h"
#include "ipc/rundir.h"
#include "manager/sandboxes.h"
#include "provider/spec.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INIT_MAX_OUT = 8 * 1024 * 1024, FRAMES_PER_TURN = 64 };
#define LATE_USEC (1 * USEC_PER_SEC)
#define TAILS_PATIENCE (2 * USEC_PER_SEC)

static void lied(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	err_set(&err, E_PROTOCOL, "the room's init broke the protocol; the room was ended");
	sandbox_fail(s, &err);
}

static void close_init(struct supervisor *s)
{
	if (!s->init.open)
		return;
	conn_close(&s->init);
	peers_go_on(s);
}

void sandbox_flush_init(struct supervisor *s)
{
	/* A dead init is noticed by its pidfd; its last frames may still be unread. */
	if (!s->init.open || conn_flush(&s->init) < 0)
		return;
	if (!sandbox_init_is_full(s))
		peers_go_on(s);
}

bool sandbox_init_is_full(const struct supervisor *s)
{
	const struct chan *c = &s->init.chan;

	return s->init.open &&
	       (c->out_fds_n >= ARRAY_SIZE(c->out_fds) / 2 || chan_pending(c) > INIT_MAX_OUT / 2);
}

static void on_init_again(struct loop_job *job);

/* Read at most max frames. If there may be more, continue later, as frames that are left in the
 * buffer do not make the socket readable. Return false if the channel is at its end or init broke
 * the protocol. */
static bool read_init(struct supervisor *s, int max)
{
	for (int i = 0; i < max && s->init.open; i++) {
		struct chan_frame f;
		int r = chan_recv(&s->init.chan, &f);
		bool ok;

		if (r == 0)
			return true;
		ok = r == 1 && task_on_frame(s, &f);
		if (r == 1)
			chan_frame_done(&f);
		if (!ok) {
			if (r != -EPIPE)
				lied(s);
			return false;
		}
	}
	if (s->init.open)
		loop_defer(s->loop, &s->init_again, on_init_again);
	return true;
}

static void take_init(struct supervisor *s)
{
	if (read_init(s, FRAMES_PER_TURN)) {
		sandbox_flush_init(s);
		return;
	}
	close_init(s);
	/* An init that closes its end is dead or has stopped working. */
	if (s->state == SUP_UP || s->state == SUP_ENDING)
		sandbox_kill(s, CTL_REASON_INIT_DIED);
}

static void on_init(struct loop_io *io, uint32_t events)
{
	take_init(container_of(io, struct supervisor, init.io));
}

static void on_init_again(struct loop_job *job)
{
	struct supervisor *s = container_of(job, struct supervisor, init_again);

	if (s->init.open)
		take_init(s);
}

static void say_failure(struct supervisor *s, const struct cloche_err *err)
{
	if (!s->failure)
		s->failure = strdup(err->message);
	s->end.reason = CTL_REASON_FAILED;
	peers_error(s, err);
}

static void on_room_dead(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, room_io);
	struct room_exit how = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;

	loop_io_remove(io);
	/* Read what init sent before it died, above all how processes ended. */
	read_init(s, INT32_MAX);
	close_init(s);
	sync_room_dead(s);
	if (s->room->provider->wait(s->room, &how, &err) < 0)
		say_failure(s, &err); /* it is lost, or what it leaves has not come back */
	s->room_dead = true;
	if (s->state == SUP_UP || s->state == SUP_ENDING)
		sandbox_kill(s, CTL_REASON_INIT_DIED);
	tasks_end(s, how.oom_killed);
	sandbox_check_end(s);
}

static void on_grace_over(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, end.grace);

	sandbox_kill(s, s->end.reason);
}

static void on_deadline(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, end.deadline);

	sandbox_end(s, CTL_REASON_TIMEOUT, s->start.grace_usec);
}

void sandbox_end(struct supervisor *s, enum ctl_reason reason, uint64_t grace_usec)
{
	uint64_t at = clock_mono_usec() + MIN(grace_usec, (uint64_t)INT64_MAX / 2);

	if (s->state != SUP_UP && s->state != SUP_ENDING)
		return;
	if (s->state == SUP_UP) {
		s->state = SUP_ENDING;
		s->end.reason = reason;
		s->end.timed_out = reason == CTL_REASON_TIMEOUT;
		s->end.kill_at = UINT64_MAX;
		s->end.term_due = true;
		record_update(s);
	}
	s->end.stopped |= reason == CTL_REASON_STOPPED;
	if (grace_usec == 0 || HASH_COUNT(s->tasks.known) == 0) {
		sandbox_kill(s, s->end.reason);
		return;
	}
	if (at >= s->end.kill_at)
		return;
	s->end.kill_at = at;
	if (loop_timer_set(s->loop, &s->end.grace, at, on_grace_over) < 0)
		sandbox_kill(s, s->end.reason);
	deadline_tell_room(s);
}

void sandbox_kill(struct supervisor *s, enum ctl_reason reason)
{
	if (s->state >= SUP_KILLED)
		return;
	if (s->state != SUP_ENDING)
		s->end.reason = reason;
	s->state = SUP_KILLED;
	room_spec_close(&s->spec);
	loop_timer_clear(&s->end.grace);
	loop_timer_clear(&s->end.deadline);
	loop_timer_clear(&s->sweeper.due);
	loop_timer_clear(&s->sample.timer);
	if (s->room && !s->room_dead)
		(void)s->room->provider->kill(s->room, SIGKILL, NULL);
	forwards_stop(s);
	helpers_stop(s);
	if (!s->room)
		sandbox_check_end(s);
}

void sandbox_fail(struct supervisor *s, const struct cloche_err *err)
{
	if (s->state >= SUP_KILLED)
		return;
	s->state = SUP_UP; /* this reason replaces that of an orderly end */
	say_failure(s, err);
	sandbox_kill(s, CTL_REASON_FAILED);
}

/* Write the final record; no counter changes any more. */
static void settle_record(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	tasks_close(s);
	loop_timer_clear(&s->record_due);
	s->ended_real = clock_real_usec();
	if (looks_through(&s->look, &s->carry, s->room ? s->room->config_fd : -1, &s->dir,
		    s->start.kept ? 0 : peers_owner(s), &err) < 0)
		fprintf(stderr, "cloche-supervisor: %s\n", err.message);
	/* Without this record the sandbox counts as crashed, and the next command removes it. */
	if (s->start.kept && s->dir.lock >= 0 && record_write(s, &err) < 0)
		fprintf(stderr, "cloche-supervisor: %s\n", err.message);
}

static void finish(struct loop_job *job)
{
	struct supervisor *s = container_of(job, struct supervisor, end.finish);
	struct ctl_ended m = {.reason = s->end.reason};
	struct cloche_err err = CLOCHE_ERR_INIT;
	/* What an engine has made is gone when its clients hear of the end. */
	bool by_program = s->room && s->room->provider->path;
	/* If its maker is still there, the maker removes the log. */
	bool forget = s->start.unfinished && peers_owner_is_gone(s), made = s->room, left;

	if (s->room && s->room->provider->usage(s->room, &s->usage, NULL) == 0) {
		m.usage.cpu_usec = s->usage.cpu_usec;
		m.usage.memory_peak_bytes = s->usage.memory_peak_bytes;
		m.usage.pids_peak = s->usage.pids_peak;
	}
	tasks_give_up(s);
	settle_record(s);
	if (!by_program)
		peers_ended(s, &m);
	/* From here on none can connect while the room is removed. */
	loop_io_remove(&s->peers.listener);
	s->dir.listen = fd_close(s->dir.listen);
	s->room = room_free(s->room);
	if (s->dir.base >= 0 && !s->sweeper.started && !s->start.kept)
		sandboxes_sweep(s->dir.base, NULL, NULL);
	if (forget)
		recording_forget(s);
	left = sandbox_dir_reap(&s->dir, &err) < 0;
	if (by_program)
		peers_ended(s, &m);
	/* The same may have been the failure: an engine that does not answer. */
	if (left && !(s->failure && strcmp(s->failure, err.message) == 0))
		fprintf(stderr, "cloche-supervisor: %s\n", err.message);
	if ((s->start.kept && s->started_real && !s->start.unfinished) || (left && made))
		sandbox_dir_leave(&s->dir);
	else
		sandbox_dir_remove(&s->dir);
	loop_stop(s->loop, 0);
}

static void on_tails_over(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, end.tails);

	s->end.tails_over = true;
	sandbox_check_end(s);
}

/* Clients that started processes may still have to read their last output. */
static bool wait_for_readers(struct supervisor *s)
{
	if (s->end.tails_over || tasks_delivered(s))
		return false;
	return s->end.tails.loop ||
	       loop_timer_in(s->loop, &s->end.tails, TAILS_PATIENCE, on_tails_over) == 0;
}

void sandbox_check_end(struct supervisor *s)
{
	if (s->state != SUP_KILLED || (s->room && !s->room_dead))
		return;
	recording_finish(s);
	if (!recording_is_over(s) || !helpers_gone(s) || wait_for_readers(s))
		return;
	s->state = SUP_ENDED;
	loop_timer_clear(&s->net.patience);
	loop_timer_clear(&s->end.tails);
	loop_defer(s->loop, &s->end.finish, finish);
}

static void on_sweeper_done(struct loop_io *io, uint32_t events)
{
	child_reap(container_of(io, struct child, death));
}

/* Use a child process: killing what a crashed sandbox left may take a second, and this sandbox must
 * go on. */
static void sandbox_on_late(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, sweeper.due);
	struct child *c = &s->sweeper.child;

	c->pid = fork();
	if (c->pid == 0) {
		/* The child must not hold our lock if we die meanwhile. */
		fd_close(s->dir.lock);
		sandboxes_sweep(s->dir.base, NULL, NULL);
		_exit(0);
	}
	s->sweeper.started = true;
	if (c->pid < 0)
		return;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0 || loop_io_add(s->loop, &c->death, c->pidfd, EPOLLIN, on_sweeper_done) < 0)
		child_reap(c);
}

/* From here on other clients can connect. */
static int open_doors(struct supervisor *s, struct cloche_err *err)
{
	const char *name = s->start.name;
	int r = sandbox_dir_make(&s->dir, s->spec.id, err);

	/* A sandbox that is not kept may share its name; it is then found by its id alone. */
	if (r == 0 && !s->start.kept && name && name[0])
		(void)!sandbox_dir_take_name(&s->dir, name, NULL);
	if (r == 0)
		r = record_write(s, err);
	if (r == 0)
		r = sandbox_dir_listen(&s->dir, err);
	if (r == 0 &&
		loop_io_add(s->loop, &s->peers.listener, s->dir.listen, EPOLLIN, peer_accept) < 0)
		r = err_nomem(err);
	return r;
}

static void after_start(struct loop_job *job)
{
	struct supervisor *s = container_of(job, struct supervisor, after_start);
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (s->state != SUP_UP && s->state != SUP_ENDING)
		return;
	r = s->start.gateway ? helpers_watch(s, &err) : 0;
	if (r == 0 && s->dir.listen < 0)
		r = open_doors(s, &err);
	if (r == 0 && loop_timer_in(s->loop, &s->sweeper.due, LATE_USEC, sandbox_on_late) < 0)
		r = err_nomem(&err);
	if (r < 0)
		sandbox_fail(s, &err);
	else
		sample_start(s);
}

/* Each mount gets the descriptor that was passed for it. */
static bool take_sources(struct supervisor *s)
{
	unsigned n = 0, given = s->sources;

	s->sources = 0;
	if (s->spec.root == ROOM_ROOT_DIR && n < given)
		s->spec.root_fd = CTL_FIRST_SOURCE + (int)n++;
	for (size_t i = 0; i < s->spec.mounts_n; i++)
		if (!s->spec.mounts[i].guard && n < given)
			s->spec.mounts[i].fd = CTL_FIRST_SOURCE + (int)n++;
		else if (!s->spec.mounts[i].guard)
			return false;
	return n == given;
}

static int check_start(struct supervisor *s, struct cloche_err *err)
{
	const struct ctl_start *m = &s->start;
	struct wire_in r = wire_in(m->room);

	if (m->version != CTL_VERSION)
		return err_set(err, E_PROTOCOL,
			"the client speaks version %u of the protocol, this supervisor %d",
			m->version, CTL_VERSION);
	if (!room_spec_get(&r, &s->spec) || !wire_ok(&r))
		return err_set(err, E_PROTOCOL, "malformed room");
	if (!take_sources(s))
		return err_set(err, E_PROTOCOL, "the room has other mounts than descriptors");
	if (m->id && m->id[0] && !rundir_is_id(str_from(m->id)))
		return err_set(err, E_USAGE, "\"%s\" is no sandbox id", m->id);
	if (m->name && !utf8_is_valid(str_from(m->name)))
		return err_set(err, E_USAGE, "the name is not valid UTF-8");
	for (size_t i = 0; m->labels && m->labels[i]; i++)
		if (!utf8_is_valid(str_from(m->labels[i])) || !strchr(m->labels[i], '='))
			return err_set(err, E_USAGE, "label %zu is no KEY=VALUE in UTF-8", i + 1);
	if (m->gateway != (s->spec.net == ROOM_NET_GATEWAY))
		return err_set(err, E_PROTOCOL, "a gateway and no use for it, or the reverse");
	return 0;
}

static int complete_spec(struct supervisor *s, struct cloche_err *err)
{
	const char *id = s->start.id;
	char made[RUNDIR_ID_BYTES + 1];

	if (!id || !id[0]) {
		rundir_make_id(made);
		id = made;
	}
	free(s->spec.id);
	s->spec.id = strdup(id);
	if (!s->spec.init_path)
		s->spec.init_path = program_find("cloche-init", err);
	if (!s->spec.init_path)
		return -E_NOT_FOUND;
	return s->spec.id ? 0 : err_nomem(err);
}

/* A detached supervisor outlives the terminal (or the pipe) of the program that started it. */
static int move_stderr(struct supervisor *s, struct cloche_err *err)
{
	_cleanup_fd_ int fd = s->start.kept
				      ? openat(s->dir.fd, RUNDIR_MESSAGES,
						O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
				      : open("/dev/null", O_WRONLY | O_CLOEXEC);

	return fd < 0 || dup2(fd, 2) < 0 ? err_sys(err, errno, "open a file for messages") : 0;
}

/* Prepare what a sandbox with logs needs before its room. */
static int prepare_logs(struct supervisor *s, struct cloche_err *err)
{
	const char *name = s->start.name;
	int r = sandbox_dir_make(&s->dir, s->spec.id, err);

	if (r == 0 && s->start.kept && name && name[0])
		r = sandbox_dir_take_name(&s->dir, name, err);
	if (r == 0 && mkdirat(s->dir.fd, RUNDIR_EXECS, 0700) < 0)
		r = sandbox_dir_failed(
			&s->dir, err_sys(err, errno, "make the directory of logs"), err);
	if (r == 0)
		r = record_write(s, err);
	fd_raise_limit(); /* each process needs a few descriptors */
	return r;
}

/* Called while the room is made, before a command can start in it. */
static void on_born(void *user, pid_t init)
{
	struct supervisor *s = user;

	(void)!looks_note(&s->look, &s->dir, s->spec.id, init, &s->look_note);
}

static int start_programs(
	struct supervisor *s, const int *fds, int *ret_ca_fd, struct cloche_err *err)
{
	int r = s->start.recorded ? recording_start(s, fds + s->start.gateway, err) : 0;

	if (r == 0)
		r = logins_take(s, fds + s->start.gateway + (s->start.recorded ? 2 : 0), err);
	return r == 0 && s->start.gateway ? helpers_start(s, fds[0], ret_ca_fd, err) : r;
}

static bool is_given_up(void *user)
{
	return peers_owner_is_gone(user);
}

/* Create the room with provider p. Record everything that would have to be removed, before it is
 * made. */
static int create_with(struct supervisor *s, const struct provider *p, struct cloche_err *err)
{
	int r = sandbox_dir_plan(&s->dir, p, &s->spec, err);

	s->look.copies = provider_makes_room(p->name);
	/* Without a room nothing is protected, so every change counts. */
	if (!provider_makes_room(p->name))
		s->look.kept_n = 0;
	if (r == 0)
		r = p->create(p, &s->spec, &s->room, err);
	if (r == 0 && s->look_note.code != 0) {
		*err = s->look_note;
		r = -err->code;
	}
	return r;
}

static int make_room(struct supervisor *s, const int *fds, struct cloche_err *err)
{
	_cleanup_fd_ int ca_fd = -1;
	int r = complete_spec(s, err);

	if (r == 0 && (s->start.kept || s->start.recorded))
		r = prepare_logs(s, err);
	if (r == 0 && s->start.detached)
		r = move_stderr(s, err);
	if (r == 0)
		r = start_programs(s, fds, &ca_fd, err);
	if (r < 0)
		return r;
	s->spec.ca_fd = ca_fd;
	s->spec.labels = s->start.labels;
	s->spec.born = on_born;
	s->spec.born_user = s;
	s->spec.given_up = is_given_up;
	s->spec.elsewhere = choose_on_elsewhere;
	r = looks_plan(&s->look, &s->carry, &s->spec, err);
	if (r == 0)
		r = choose_provider(s, create_with, err);
	s->spec.ca_fd = -1;
	if (r < 0 && s->start.gateway)
		helpers_explain(s, err);
	return r < 0 ? -err->code : 0;
}

static int watch_room(struct supervisor *s, struct cloche_err *err)
{
	int r = conn_open(&s->init, s->loop, TAKE_FD(s->room->control_fd), ROOMCTL_MAX_REPLY,
		INIT_MAX_OUT, on_init);

	s->init.chan.max_send = ROOMCTL_MAX_PAYLOAD; /* init may send little, but receives much */
	if (r == 0)
		r = loop_io_add(s->loop, &s->room_io, s->room->watch_fd, EPOLLIN, on_room_dead);
	if (r == 0 && s->start.timeout_usec)
		r = loop_timer_in(s->loop, &s->end.deadline, s->start.timeout_usec, on_deadline);
	if (r < 0)
		return err_sys(err, -r, "watch the room");
	return 0;
}

void sandbox_start(struct supervisor *s, struct ctl_start *m, const int *fds)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	s->start = *m;
	*m = (struct ctl_start){0};
	s->created_real = clock_real_usec();
	r = check_start(s, &err);
	s->start.room = STR_NULL;
	if (r == 0)
		r = make_room(s, fds, &err);
	if (r == 0)
		r = watch_room(s, &err);
	s->state = SUP_UP;
	if (r < 0) {
		if (s->room && !s->room_io.loop)
			s->room = room_free(s->room);
		sandbox_fail(s, &err);
		return;
	}
	if (!s->start.recorded) {
		sandbox_go_on(s);
		return;
	}
	if (recording_look(s, &err) < 0)
		sandbox_fail(s, &err);
}

void sandbox_go_on(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (s->state != SUP_UP)
		return;
	room_spec_close(&s->spec);
	s->started_real = clock_real_usec();
	s->started_at = clock_mono_usec();
	/* No client would ever know of this sandbox. */
	if (s->start.kept && peers_owner_is_gone(s)) {
		s->started_real = 0;
		sandbox_kill(s, CTL_REASON_CLIENT_GONE);
		return;
	}
	/* A client that is told that the sandbox runs may tell others, which connect at once. */
	r = s->start.kept ? open_doors(s, &err) : 0;
	if (r < 0) {
		sandbox_fail(s, &err);
		return;
	}
	if (s->passed_over)
		peers_warning(s, str_from(s->passed_over));
	for (unsigned i = 0; i < s->room->unenforced_n; i++)
		peers_warning(s, str_from(s->room->unenforced[i]));
	peers_started(s);
	peers_begin(s);
	loop_defer(s->loop, &s->after_start, after_start);
}
