/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor takes from init, which may be anybody's by then: each frame in each state of
 * a process. Here the room is one of the test's own. */
#include "ipc/wire.h"
#include "supervisor/supervisor.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { NUMBER = 7, PID = 4, ABSENT = -1 };

static struct room_usage usage_now;

static int usage_of_test(struct room *r, struct room_usage *ret, struct cloche_err *err)
{
	*ret = usage_now;
	return 0;
}

static int terms_sent, kills_sent;

static int kill_of_test(struct room *r, int sig, struct cloche_err *err)
{
	*(sig == SIGTERM ? &terms_sent : &kills_sent) += 1;
	return 0;
}

static const struct provider provider_of_test = {
	.name = "test", .usage = usage_of_test, .kill = kill_of_test};
static struct room room_of_test = {.provider = &provider_of_test};

/* One that has a process in that state, if any. */
static void world_init(struct supervisor *s, int state, bool tty)
{
	struct task *t;

	*s = (struct supervisor){.state = SUP_UP, .room = &room_of_test};
	if (state == ABSENT)
		return;
	t = calloc(1, sizeof(*t));
	must(t != NULL);
	t->sup = s;
	t->number = NUMBER;
	t->state = (enum task_state)state;
	t->tty = tty;
	t->input = t->dir = -1;
	for (int i = 0; i < 2; i++)
		t->streams[i].in = t->streams[i].to = t->streams[i].relay[0] =
			t->streams[i].relay[1] = -1;
	HASH_ADD(hh, s->tasks.known, number, sizeof(t->number), t);
}

static void world_done(struct supervisor *s)
{
	struct task *t, *tmp;

	HASH_ITER (hh, s->tasks.known, t, tmp) {
		HASH_DELETE(hh, s->tasks.known, t);
		free(t);
	}
}

/* Each frame is its number and up to two values; a descriptor of /dev/null comes along if fd. */
struct said {
	uint16_t type;
	uint32_t number, value;
	unsigned bytes; /* of the payload that are sent; 0: all */
	bool fd;
};

static bool is_taken(struct supervisor *s, const struct said *said)
{
	_cleanup_(buf_donep) struct buf payload = BUF_INIT(64);
	struct wire_out w = wire_out(&payload);
	struct chan_frame f = {.type = said->type};
	bool taken;

	if (said->type != ROOM_READY) {
		wire_put_u32(&w, said->number);
		if (said->type == ROOM_FAILED)
			wire_put_int(&w, ROOM_STAGE_LOOKUP, 1);
		wire_put_u32(&w, said->value);
	}
	f.payload = buf_str(&payload);
	if (said->bytes)
		f.payload = str_prefix(f.payload, said->bytes);
	if (said->fd) {
		f.fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
		f.fds_n = 1;
	}
	taken = task_on_frame(s, &f);
	chan_frame_done(&f);
	return taken;
}

static void a_lie_is_noticed(void)
{
	static const struct {
		int state; /* of process 7, or ABSENT */
		bool tty;
		struct said said;
		bool taken;
	} rows[] = {
		{ABSENT, false, {ROOM_STARTED, NUMBER, PID}, false},
		{ABSENT, false, {ROOM_FAILED, NUMBER, ENOENT}, false},
		{ABSENT, false, {ROOM_EXITED, NUMBER, 0}, false},
		{TASK_ASKED, false, {ROOM_STARTED, NUMBER, PID}, true},
		{TASK_ASKED, false, {ROOM_STARTED, NUMBER + 1, PID}, false},
		{TASK_ASKED, false, {ROOM_FAILED, NUMBER, ENOENT}, true},
		{TASK_ASKED, false, {ROOM_EXITED, NUMBER, 0}, false},
		{TASK_RUNS, false, {ROOM_STARTED, NUMBER, PID}, false},
		{TASK_RUNS, false, {ROOM_FAILED, NUMBER, ENOENT}, false},
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0}, true},
		/* A descriptor where none belongs, none where one does, or one of another kind. */
		{TASK_ASKED, false, {ROOM_STARTED, NUMBER, PID, 0, true}, false},
		{TASK_ASKED, true, {ROOM_STARTED, NUMBER, PID}, false},
		{TASK_ASKED, true, {ROOM_STARTED, NUMBER, PID, 0, true}, false},
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0, 0, true}, false},
		/* Stopped, or continued, is no end. */
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0x137f}, false},
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0xffff}, false},
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0x10000}, false},
		/* Only what runs at a terminal is said to be stopped, and by a signal. */
		{TASK_RUNS, true, {ROOM_STOPPED, NUMBER, SIGTSTP, 5}, true},
		{TASK_RUNS, false, {ROOM_STOPPED, NUMBER, SIGTSTP, 5}, false},
		{TASK_ASKED, true, {ROOM_STOPPED, NUMBER, SIGTSTP, 5}, false},
		{ABSENT, true, {ROOM_STOPPED, NUMBER, SIGTSTP, 5}, false},
		{TASK_RUNS, true, {ROOM_STOPPED, NUMBER, 0, 5}, false},
		{TASK_RUNS, true, {ROOM_STOPPED, NUMBER, 65, 5}, false},
		{TASK_RUNS, true, {ROOM_STOPPED, NUMBER, SIGTSTP, 5, true}, false},
		/* Cut off, and what only we may say. */
		{TASK_ASKED, false, {ROOM_STARTED, NUMBER, PID, 7}, false},
		{TASK_RUNS, false, {ROOM_EXITED, NUMBER, 0, 4}, false},
		{TASK_RUNS, false, {ROOM_SIGNAL, NUMBER, 9}, false},
		{TASK_RUNS, false, {ROOM_EXEC, NUMBER, 0}, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct supervisor s;

		world_init(&s, rows[i].state, rows[i].tty);
		if (is_taken(&s, &rows[i].said) != rows[i].taken)
			tap_fail("row %zu", i);
		world_done(&s);
	}
}

static void ready_comes_once(void)
{
	static const struct said ready = {ROOM_READY};
	struct supervisor s;

	world_init(&s, ABSENT, false);
	check(is_taken(&s, &ready) && s.ready);
	check(!is_taken(&s, &ready));
}

/* What a limit did counts once, and is asked for only if a process failed. */
static void limits_are_seen_once(void)
{
	static const struct {
		uint32_t status;
		uint64_t kills;
		bool refused;
		uint64_t kills_seen;
		bool refused_seen;
	} rows[] = {{0, 3, true, 0, false}, {9, 1, false, 1, false}, {0x100, 1, true, 1, true},
		{9, 4, true, 4, true}};
	uint64_t kills = 0;
	bool refused = false;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct said exited = {ROOM_EXITED, NUMBER, rows[i].status};
		struct supervisor s;

		usage_now.oom_kills = rows[i].kills;
		usage_now.pids_refused = rows[i].refused;
		world_init(&s, TASK_RUNS, false);
		s.tasks.oom_kills_seen = kills;
		s.tasks.pids_refused_seen = refused;
		check(is_taken(&s, &exited));
		check_int(s.tasks.oom_kills_seen, rows[i].kills_seen);
		check_int(s.tasks.pids_refused_seen, rows[i].refused_seen);
		kills = s.tasks.oom_kills_seen;
		refused = s.tasks.pids_refused_seen;
		world_done(&s);
	}
}

/* A command that init is starting neither misses it nor has it twice. */
static void term_is_sent_once(void)
{
	static const struct {
		int state;
		uint16_t said;
		int before, after;
	} rows[] = {{TASK_ASKED, ROOM_STARTED, 0, 1}, {TASK_RUNS, ROOM_EXITED, 1, 1},
		/* Nothing is left that could hear of it. */
		{TASK_ASKED, ROOM_FAILED, 0, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct said said = {rows[i].said, NUMBER, rows[i].said == ROOM_FAILED};
		struct supervisor s;

		world_init(&s, rows[i].state, false);
		s.state = SUP_ENDING;
		s.end.term_due = true;
		terms_sent = kills_sent = 0;
		deadline_tell_room(&s);
		check_int(terms_sent, rows[i].before);
		check(is_taken(&s, &said));
		check_int(terms_sent, rows[i].after);
		check_int(kills_sent, rows[i].said != ROOM_STARTED);
		deadline_tell_room(&s);
		check_int(terms_sent, rows[i].after);
		world_done(&s);
	}
}

int main(void)
{
	run_test(a_lie_is_noticed);
	run_test(ready_comes_once);
	run_test(limits_are_seen_once);
	run_test(term_is_sent_once);
	return tap_done();
}
