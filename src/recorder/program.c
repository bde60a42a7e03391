/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: frames from the supervisor are handled one after the other; for some it
 * waits for the answer (ipc/recording.h). A failure is reported, and the next frame is tried all
 * the same: a record with a gap is better than none, and the run matters more than both. */
#include "recorder/program.h"
#include "base/fd.h"
#include "ipc/recording.h"
#include "jail/landlock.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

enum { MAX_OUT = 64 * 1024, SYNC_MS = 1000 };

struct program {
	struct chan chan;
	struct recorder r;
	bool begun, ended;
	bool copied;       /* a tree is */
	unsigned commands; /* that have ended */
};

static const enum state_op_kind kinds[] = {[RECORDING_SANDBOX_START] = STATE_SANDBOX_START,
	[RECORDING_SANDBOX_END] = STATE_SANDBOX_END,
	[RECORDING_EXEC_START] = STATE_EXEC_START};

/* Allow reading the room's files, but writing only the record (INV-NARROW). */
static int narrow(struct cloche_err *err)
{
	static const char *const writable[] = {"/proc/self/fd/4", "/proc/self/fd/5"};

	_Static_assert(
		RECORDING_FD_LOGS == 4 && RECORDING_FD_CONTENTS == 5, "they are spelled out");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "set no_new_privs");
	return landlock_restrict(writable, ARRAY_SIZE(writable), err);
}

static bool begin(struct program *p, struct str payload, struct cloche_err *err)
{
	struct recording_begin m;
	char id[RUNDIR_ID_BYTES + 1];

	if (p->begun || !recording_get_begin(payload, &m) || !rundir_is_id(m.id))
		return false;
	snprintf(id, sizeof(id), "%.*s", STR_FMT(m.id));
	p->begun = true;
	p->r.limit = m.limit;
	p->r.always = m.sync == OPLOG_SYNC_ALWAYS;
	(void)!recorder_open(&p->r, id, err);
	p->r.state.log.sync = m.sync;
	return true;
}

static bool add_tree(struct program *p, struct chan_frame *f, struct cloche_err *err)
{
	struct recording_tree m;
	struct recorder_tree *t = &p->r.trees[p->r.trees_n];

	if (!recording_get_tree(f->payload, &m) || f->fds_n != 1 ||
		p->r.trees_n == RECORDER_MAX_TREES)
		return false;
	*t = (struct recorder_tree){
		.fd = TAKE_FD(f->fds[0]), .layer = m.layer, .noted = m.noted, .copied = m.copied};
	p->copied |= m.copied;
	t->path = str_dup(m.path);
	if (t->path)
		p->r.trees_n++;
	else
		(void)err_nomem(err);
	return true;
}

static bool program_hide(struct program *p, struct str payload)
{
	struct recording_hide m;

	if (!recording_get_hide(payload, &m) || p->r.hidden_n == RECORDER_MAX_HIDDEN)
		return false;
	p->r.hidden[p->r.hidden_n++] = (struct recorder_hidden){m.device, m.inode};
	return true;
}

static bool event(struct program *p, struct chan_frame *f, struct cloche_err *err)
{
	struct recording_event m;
	bool last = f->type == RECORDING_END;

	if (!recording_get_event(f->payload, &m))
		return false;
	p->ended = p->r.last = last;
	/* All that has changed in copies is found now, and not which command did it. */
	p->r.exec = last && (!p->copied || p->commands <= 1) ? p->r.exec : 0;
	(void)!recorder_take(
		&p->r, kinds[m.kind], m.args, -1, last ? RECORDER_LOOK : RECORDER_NO_LOOK, err);
	return true;
}

static bool ended(struct program *p, struct chan_frame *f, struct cloche_err *err)
{
	struct recording_ended m;

	if (!recording_get_ended(f->payload, &m) || f->fds_n > 1)
		return false;
	p->r.exec = m.exec;
	p->commands++;
	(void)!recorder_take(
		&p->r, STATE_EXEC_END, m.members, f->fds_n ? f->fds[0] : -1, RECORDER_LOOK, err);
	return recording_send_done(&p->chan, &(struct recording_done){m.number}) == 0;
}

/* Return false if the supervisor breaks the protocol. */
static bool dispatch(struct program *p, struct chan_frame *f, struct cloche_err *err)
{
	if (f->type == RECORDING_BEGIN)
		return begin(p, f->payload, err);
	if (!p->begun)
		return false;
	switch (f->type) {
	case RECORDING_TREE:
		return add_tree(p, f, err);
	case RECORDING_HIDE:
		return program_hide(p, f->payload);
	case RECORDING_LOOK:
		p->r.exec = 0;
		(void)!recorder_take(
			&p->r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK_IF_TOLD, err);
		return recording_send_ready(&p->chan) == 0;
	case RECORDING_EVENT:
	case RECORDING_END:
		return event(p, f, err);
	case RECORDING_ENDED:
		return ended(p, f, err);
	default:
		return false;
	}
}

static int serve(struct program *p)
{
	while (!p->ended) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct chan_frame f;
		struct oplog *log = &p->r.state.log;
		bool due = log->dirty && log->sync == OPLOG_SYNC_INTERVAL;
		int r = chan_recv_wait(&p->chan, &f, due ? SYNC_MS : -1);

		/* No further entry comes that would sync it. If this fails, the next entry tries
		 * again. */
		if (r == -ETIMEDOUT) {
			(void)!oplog_sync(log, NULL);
			log->dirty = false;
			continue;
		}
		if (r != 1)
			return r == -EPIPE ? 0 : 125;
		r = dispatch(p, &f, &err);
		chan_frame_done(&f);
		if (!r)
			return 125;
		if (err.code != 0 &&
			recording_send_trouble(
				&p->chan, &(struct recording_trouble){str_from(err.message)}) < 0)
			return 125;
		if (chan_flush_wait(&p->chan, -1) < 0)
			return 0;
	}
	return 0;
}

int recorder_program(void)
{
	static struct program p = {
		.r = {.logs = RECORDING_FD_LOGS, .contents = RECORDING_FD_CONTENTS, .lock = -1}};
	const int keep[] = {RECORDING_FD, RECORDING_FD_LOGS, RECORDING_FD_CONTENTS};
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (fd_sanitize_stdio() < 0 || fd_close_from(3, keep, ARRAY_SIZE(keep)) < 0)
		return 125;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
		/* Who opens a file while we have a lease on it only waits a moment. */
		signal(SIGIO, SIG_IGN) == SIG_ERR || narrow(&err) < 0 ||
		chan_init(&p.chan, RECORDING_FD, RECORDING_MAX_PAYLOAD, MAX_OUT) < 0) {
		fprintf(stderr, "cloche-recorder: %s\n",
			err.code ? err.message : "is started by cloche, not by hand");
		return 125;
	}
	r = serve(&p);
	recorder_done(&p.r);
	return r;
}
