/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "session/store.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * A child runs a session as an agent task does, and is killed at a random moment, again and again
 * in the same directory. It tells through shared memory how far it has certainly come. After each
 * kill the context must load (INV-CRASH-SAFE), and hold every reply and every event that the child
 * was done with.
 */

#define ROUNDS 240
#define EVENTS 24
/* No new round begins after this, so that a slow machine does not run into the test's time limit.
 */
#define TIME_MAX (25 * USEC_PER_SEC)

struct progress {
	volatile int begun;    /* replies whose beginning is on disk */
	volatile int finished; /* replies whose end is on disk */
	volatile int events;   /* events of the reply under way that were appended */
};

/* In memory if that is possible: each write is synced, and no disk is under test. */
static char dir[TAP_DIR_BYTES];
static struct progress *progress;

static struct agent_event *make_event(int round, int n)
{
	char text[512], filler[200];
	struct agent_event *e = NULL;
	size_t length = rand_below(sizeof(filler) - 1);

	memset(filler, 'x', length);
	filler[length] = '\0';
	if (n == 0)
		snprintf(text, sizeof(text),
			"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s%d\",\"n\":0}",
			round);
	else
		snprintf(text, sizeof(text), "{\"type\":\"other\",\"n\":%d,\"fill\":\"%s\"}", n,
			filler);
	must(agent_event_parse(str_from(text), &e, NULL) == 0);
	return e;
}

static void add_events(cloche_session *s, json_t *all, int round)
{
	for (int n = 0; n < EVENTS; n++) {
		_cleanup_(agent_event_freep) struct agent_event *e = make_event(round, n);

		must(session_add_event(s, e, NULL) == 0);
		must(json_array_append(all, e->raw) == 0);
		progress->events = n + 1;
	}
}

static _noreturn_ void child(int round)
{
	cloche_session *s = NULL;
	json_t *all = json_array();
	char request[32];
	struct session_reply reply = {.request_text = request, .response_text = "answer"};

	snprintf(request, sizeof(request), "request %d", round);
	must(cloche_session_open(dir, "crash", &s, NULL) == 0);
	must(session_begin_reply(s, request, NULL) == 0);
	progress->begun++;
	add_events(s, all, round);
	reply.events = all;
	must(session_finish_reply(s, &reply, NULL) == 0);
	progress->finished++;
	_exit(0);
}

static void sleep_at_most(unsigned usec)
{
	struct timespec ts = {.tv_nsec = (long)rand_below(usec) * 1000};

	nanosleep(&ts, NULL);
}

/* Until the child has appended an event, or is at its end: on a busy machine a random moment is
 * seldom in between. */
static void wait_for_an_event(pid_t pid)
{
	siginfo_t end = {0};

	while (progress->events == 0 && end.si_pid == 0) {
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		must(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0);
	}
}

static void check_events(const json_t *reply, int at_least)
{
	const json_t *events = json_object_get(reply, "events"), *e;
	size_t i;

	if ((int)json_array_size(events) < at_least)
		tap_fail("%zu events, %d were appended", json_array_size(events), at_least);
	json_array_foreach (events, i, e)
		check_int(json_integer_value(json_object_get(e, "n")),
			i); /* in order, none missing */
}

static void check_context(int round, const struct progress *before, const struct progress *now)
{
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;
	const json_t *last;
	char request[32];
	size_t n;

	if (cloche_session_open(dir, "crash", &s, &err) < 0) {
		tap_fail("round %d: %s", round, err.message);
		return;
	}
	if (cloche_session_info_of(s)->warning)
		tap_fail("round %d: %s", round, cloche_session_info_of(s)->warning);
	n = cloche_session_info_of(s)->reply_count;
	check(n >= (size_t)now->begun);
	if (n == 0 || now->begun == before->begun)
		return;
	last = session_reply(s, n - 1);
	snprintf(request, sizeof(request), "request %d", round);
	check_str(json_str_at(last, "request_text"), request);
	check_events(last, now->events);
	if (now->events > 0) {
		snprintf(request, sizeof(request), "s%d", round);
		check_z(cloche_session_info_of(s)->id_for_resume, request);
	}
	if (now->finished > before->finished)
		check(json_is_false(json_object_get(last, "is_error")));
}

/* One round; returns whether the child was killed before it had finished. */
static bool one_round(int round, unsigned longest_usec)
{
	struct progress before = *progress, now;
	int status;
	pid_t pid;

	progress->events = 0;
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		child(round);
	if (round % 2) {
		wait_for_an_event(pid);
		longest_usec = longest_usec / 16 + 1;
	}
	sleep_at_most(longest_usec);
	kill(pid, SIGKILL);
	must(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status))
		check_int(WEXITSTATUS(status), 0);
	now = *progress;
	check_context(round, &before, &now);
	/* A reply that reached the disk just before the child could say so counts from now on. */
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	must(cloche_session_load(dir, &s, NULL) == 0);
	progress->begun = (int)cloche_session_info_of(s)->reply_count;
	return WIFSIGNALED(status);
}

/* How long an undisturbed round takes, to aim at. */
static unsigned measure(void)
{
	uint64_t start = clock_mono_usec();

	one_round(0, 1);
	for (int i = 0; i < 3; i++) {
		int status;
		pid_t pid = fork();

		must(pid >= 0);
		if (pid == 0)
			child(-1);
		must(waitpid(pid, &status, 0) == pid && status == 0);
	}
	progress->begun = 0;
	progress->finished = 0;
	return (unsigned)MIN((clock_mono_usec() - start) / 3 + 500, (uint64_t)900000);
}

/* Replies pile up and loading gets slower; a fresh start now and then keeps rounds short. */
static void start_afresh(void)
{
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	progress->begun = 0;
	progress->finished = 0;
}

static void test_killed_at_any_moment(void)
{
	uint64_t start = clock_mono_usec();
	unsigned longest = measure();
	int rounds = (int)tap_rounds(ROUNDS), round = 1, killed = 0, cut_off = 0;

	start_afresh();
	for (; round <= rounds && clock_mono_usec() - start < TIME_MAX; round++) {
		int finished;

		if (round % 40 == 0)
			start_afresh();
		finished = progress->finished;
		killed += one_round(round, longest);
		cut_off += progress->finished == finished && progress->events > 0;
	}
	printf("# %d rounds, %d killed, %d of them between the first event and the end\n",
		round - 1, killed, cut_off);
	check(round > rounds * 2 / 5);
	check(killed > round / 10); /* else nothing was tested */
	check(cut_off > 0);
}

int main(void)
{
	tap_fast_dir(dir);
	progress = mmap(
		NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(progress != MAP_FAILED);
	run_test(test_killed_at_any_moment);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
