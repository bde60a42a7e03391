/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: copies a directory to another machine, or what changed there back
 * (sync/sync.h). It is started with
 *
 *   cloche-sync push|pull all|tracked|none ID HIDDEN-NUMBER [HIDDEN-PATH...] [OWN-PATH...]
 *   cloche-sync push-one|pull-one all|tracked|none ID 0 NAME NAME-THERE
 *   cloche-sync push-file all|tracked|none ID 0 NAME-THERE [kept]
 *
 * and three descriptors: a socket to the file worker there, the directory, and the file of the
 * state, open for both. Hidden paths do not go there, and what is at an OWN-PATH never comes back.
 * push-one and pull-one copy one file of the directory alone, of which push-one has a fourth
 * descriptor. push-file has a file in place of the directory, and makes it NAME-THERE, unless it is
 * kept there and has that name already; it needs no state. It prints lines of JSON, the last of
 * which says that it is done, or why not, and sentences for the person to standard error; each
 * sentence is in its line, too ("text"). On SIGTERM it ends soon and in order. The worker is
 * hostile. So before anything is read of it, this program can reach no file but those of the
 * directory, and cannot gain any right (INV-NARROW). If nothing goes on for some minutes, it ends,
 * whatever the worker says. */
#include "base/clock.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/jsonout.h"
#include "base/parse.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/seccomp.h"
#include "sync/sync.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	FD_WORKER = 3,
	FD_DIRECTORY = 4,
	FD_STATE = 5,
	FD_ONE = 6,
	SAY_MAX = 10,
	TELLS_MAX = 1000, /* lines of one kind; the last line has their number */
	TICK_SEC = 5,
	STALL_TICKS = 36,
	STOP_TICKS = 2, /* from SIGTERM to the end of its patience */
	TEXT_MAX_BYTES = 24 * 1024,
	LINE_MAX_BYTES = 64 * 1024,
};

/* CHOWN, DAC_OVERRIDE, FOWNER: root's directory may have files of others. */
#define CAPS_SYNC (1ULL << 0 | 1ULL << 1 | 1ULL << 3)

static struct {
	cloche_files *f;
	struct sync_report report;
	struct sync_options options;
	bool push, file;
	uint64_t told_usec;
	volatile sig_atomic_t pulse, stalled, stopped;
} sync_program;

/* --- what is printed --- */

static void print_line(struct jsonout *o)
{
	jsonout_close(o, '}');
	if (o->error == 0 && buf_add_char(o->b, '\n') == 0)
		(void)!fd_write_all(STDOUT_FILENO, buf_data(o->b), buf_len(o->b));
}

static void print_begin(struct jsonout *o, const char *event)
{
	jsonout_open(o, NULL, '{');
	jsonout_text(o, "event", event);
	jsonout_text(o, "direction", sync_program.push ? "push" : "pull");
}

static void print_counts(struct jsonout *o)
{
	const struct sync_report *r = &sync_program.report;

	jsonout_number(o, "entries", r->entries);
	jsonout_number(o, "bytes", r->bytes);
	jsonout_number(o, "removed", r->removed);
}

/* What is said of a path, and then of its number if that is large. */
static const char *const sentences[SYNC_EVENT_END_] = {
	[SYNC_KEPT_BOTH] = "changed here and in the sandbox: yours stays, the sandbox's is",
	[SYNC_KEPT] = "was deleted in the sandbox and changed here: it stays",
	[SYNC_RESTORED] = "was deleted here and changed in the sandbox: it is here again",
	[SYNC_LEFT] = "changed on both sides: it was not sent",
	[SYNC_UNREADABLE] = "cannot be read: it was left out",
	[SYNC_UNSTEADY] = "changed while it was read: it was left out",
	[SYNC_SPECIAL] = "is neither a file, nor a directory, nor a link: it was left out",
	[SYNC_TOO_DEEP] = "lies too deep: it was left out",
	[SYNC_OWN] = "is obeyed by this machine, or hidden: what the sandbox did to it does not "
		     "come back",
};

/* Make the sentence for this, or none if enough was said. Return -ENOMEM if it is too long. */
static int word(struct buf *b, enum sync_event event, const char *path, const char *other)
{
	uint64_t told = sync_program.report.told[event];
	int r;

	if (told > SAY_MAX)
		return 0;
	if (told == SAY_MAX)
		return buf_printf(b, "and more of which each %s", sentences[event]);
	r = escape_terminal(b, str_from(path));
	if (r == 0)
		r = buf_printf(b, " %s", sentences[event]);
	if (r == 0 && other)
		r = buf_add_char(b, ' ');
	return r == 0 && other ? escape_terminal(b, str_from(other)) : r;
}

/* Say a sentence, here and in the line. */
static void say(struct jsonout *o, struct str text)
{
	if (text.n == 0)
		return;
	fprintf(stderr, "cloche: %.*s\n", STR_FMT(text));
	jsonout_str(o, "text", text);
}

static void print_tell(void *user, enum sync_event event, const char *path, const char *other)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(LINE_MAX_BYTES),
					text = BUF_INIT(TEXT_MAX_BYTES);
	struct jsonout o = {.b = &b};

	if (sync_program.report.told[event] > TELLS_MAX)
		return;
	print_begin(&o, sync_event_name(event));
	if (word(&text, event, path, other) == 0)
		say(&o, buf_str(&text));
	jsonout_text(&o, "path", path);
	if (other)
		jsonout_text(&o, "other", other);
	print_line(&o);
}

static void print_progress(void *user)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(LINE_MAX_BYTES),
					text = BUF_INIT(TEXT_MAX_BYTES);
	struct jsonout o = {.b = &b};
	uint64_t now = clock_mono_usec();

	sync_program.pulse = 1;
	if (now - sync_program.told_usec < USEC_PER_SEC)
		return;
	sync_program.told_usec = now;
	print_begin(&o, "progress");
	print_counts(&o);
	if (buf_printf(&text, "%s files: %llu entries, %llu MiB",
		    sync_program.push ? "sending" : "bringing back",
		    (unsigned long long)sync_program.report.entries,
		    (unsigned long long)(sync_program.report.bytes >> 20)) == 0)
		say(&o, buf_str(&text));
	print_line(&o);
}

static void print_done(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(LINE_MAX_BYTES);
	struct jsonout o = {.b = &b};

	print_begin(&o, "done");
	print_counts(&o);
	for (unsigned i = 0; i < SYNC_EVENT_END_; i++)
		jsonout_number(
			&o, sync_event_name((enum sync_event)i), sync_program.report.told[i]);
	print_line(&o);
}

/* --- the time without progress --- */

static void on_tick(int signo)
{
	static int still;

	still = sync_program.pulse ? 0 : still + 1;
	sync_program.pulse = 0;
	if (sync_program.stopped > STOP_TICKS)
		_exit(1);
	sync_program.stopped += sync_program.stopped > 0;
	if (still < STALL_TICKS)
		return;
	sync_program.stalled = 1;
	/* The first one asks the worker to end, the second one ends the session. */
	cloche_files_cancel(sync_program.f);
}

static void on_stop(int signo)
{
	if (sync_program.stopped++ == 0)
		cloche_files_cancel(sync_program.f);
}

static int watch(struct cloche_err *err)
{
	const struct itimerval tick = {{TICK_SEC, 0}, {TICK_SEC, 0}};
	struct sigaction act = {.sa_flags = SA_RESTART}, stop = {.sa_flags = SA_RESTART};

	act.sa_handler = on_tick;
	stop.sa_handler = on_stop;
	if (sigaction(SIGALRM, &act, NULL) < 0 || sigaction(SIGTERM, &stop, NULL) < 0 ||
		setitimer(ITIMER_REAL, &tick, NULL) < 0)
		return err_sys(err, errno, "set a timer");
	return 0;
}

/* --- the program --- */

/* Root may lack some. */
static uint64_t caps_kept(void)
{
	return geteuid() == 0 && caps_have(CAPS_SYNC) ? CAPS_SYNC : 0;
}

static bool is_id(const char *id)
{
	struct str s = str_from(id);

	return s.n > 0 && s.n <= SYNC_ID_MAX && str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "-_");
}

static bool take_arguments(int argc, char **argv)
{
	struct sync_options *o = &sync_program.options;
	const char *verb = argv[1];
	uint64_t hidden;
	bool one;

	if (argc < 5 || parse_u64(str_from(argv[4]), (uint64_t)(argc - 5), &hidden) < 0)
		return false;
	o->hidden = argv + 5;
	o->hidden_n = hidden;
	o->own = argv + 5 + hidden;
	sync_program.file = strcmp(verb, "push-file") == 0 && o->own[0];
	one = (strcmp(verb, "push-one") == 0 || strcmp(verb, "pull-one") == 0) && o->own[0] &&
	      o->own[1];
	sync_program.push = sync_program.file || strcmp(verb, "push") == 0 ||
			    (one && strcmp(verb, "push-one") == 0);
	if (one) {
		o->one = o->own[0];
		o->one_there = o->own[1];
		o->own = NULL;
		o->one_fd = FD_ONE;
	}
	o->id = argv[3];
	return (sync_program.push || one || strcmp(verb, "pull") == 0) &&
	       sync_what_from(str_from(argv[2]), &o->what) && is_id(o->id);
}

static int prepare(struct cloche_err *err)
{
	static const int keep[] = {FD_WORKER, FD_DIRECTORY, FD_STATE, FD_ONE};

	if (fd_close_from(3, keep, ARRAY_SIZE(keep)) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 ||
		prctl(PR_SET_DUMPABLE, 0) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
		signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return err_sys(err, errno, "tidy up what was inherited");
	return 0;
}

static int narrow(struct cloche_err *err)
{
	int r = caps_rlimit(RLIMIT_CORE, 0, err);

	_Static_assert(FD_DIRECTORY == 4, "it is spelled out");
	if (r == 0)
		r = caps_kept() ? caps_set(CAPS_SYNC, err) : caps_drop(err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0)
		r = landlock_confine("/proc/self/fd/4", err);
	return r == 0 ? seccomp_install(SECCOMP_SYNC, err) : r;
}

static int save(void *user, struct sync_state *state, struct cloche_err *err)
{
	return sync_state_write(FD_STATE, state, err);
}

static int run_directory(struct cloche_err *err)
{
	_cleanup_(sync_state_donep) struct sync_state state = {0};
	struct sync_options *o = &sync_program.options;
	int r = sync_state_read(FD_STATE, &state, err), saved;

	if (r < 0)
		return r;
	o->save = save;
	r = (sync_program.push ? sync_push : sync_pull)(
		sync_program.f, FD_DIRECTORY, o, &state, &sync_program.report, err);
	/* What was done before a failure was done. */
	saved = sync_state_write(FD_STATE, &state, r < 0 ? NULL : err);
	return r < 0 ? r : saved;
}

static int run(struct cloche_err *err)
{
	int r;

	sync_program.report.tell = print_tell;
	sync_program.report.progress = print_progress;
	sync_program.told_usec = clock_mono_usec();
	r = sync_program.file ? sync_push_file(sync_program.f, FD_DIRECTORY, &sync_program.options,
					sync_program.options.own[0], sync_program.options.own[1],
					&sync_program.report, err)
			      : run_directory(err);
	if (r < 0 && sync_program.stalled)
		r = err_set(err, E_BROKEN, "the other end has done nothing for %d seconds",
			TICK_SEC * STALL_TICKS);
	return r;
}

static void complain(const struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(LINE_MAX_BYTES),
					text = BUF_INIT(TEXT_MAX_BYTES);
	struct jsonout o = {.b = &b};

	print_begin(&o, "failed");
	if (escape_terminal(&text, str_from(err->message)) == 0) {
		fprintf(stderr, "cloche-sync: %.*s\n", STR_FMT(buf_str(&text)));
		jsonout_str(&o, "text", buf_str(&text));
	}
	print_line(&o);
}

int main(int argc, char **argv)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (fd_sanitize_stdio() < 0)
		return 1;
	r = prepare(&err);
	if (r == 0 && !take_arguments(argc, argv))
		r = err_set(&err, E_USAGE, "it is started by cloche, not by hand");
	if (r == 0)
		r = files_session_new(FD_WORKER, &sync_program.f, &err);
	if (r == 0)
		r = watch(&err);
	if (r == 0)
		r = narrow(&err);
	if (r == 0)
		r = run(&err);
	if (r < 0)
		complain(&err);
	else
		print_done();
	return r < 0;
}
