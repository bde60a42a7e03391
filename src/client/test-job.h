/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Drives the real supervisor and the real init, in rooms of the native provider: as the user who
 * runs this and, if that is root, again as an ordinary user. What is started carries a marker in
 * its argv, so that whatever is left behind can be found. */

#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "base/strv.h"
#include "client/client_internal.h"
#include "fs/fs.h"
#include "ipc/netconf.h"
#include "ipc/rundir.h"
#include "provider/provider.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUT_MAX = 32 * 1024 * 1024, ORDINARY_UID = 54321 };

extern char marker[32], group_prefix[64], base[TAP_DIR_BYTES], runtime[160];

/* What a process wrote. */
struct taken {
	struct buf out[2];
	int refuse;        /* stream whose reader goes away, or 0 */
	atomic_bool spoke; /* something came */
};

struct job {
	struct room_spec room;
	struct exec_spec spec;
	struct client_io io;
	struct taken taken;
	struct client_result result;
	struct ctl_ended ended;
	struct client *client;
	struct cloche_err err;
	bool long_lived;
	uint64_t grace_usec;
	int code;          /* of client_exec */
	atomic_bool began; /* run_beside: the client has heard of the start */
};

void job_init(struct job *j, const char *script);
void job_done(struct job *j);
void job_start(struct job *j);
void job_exec(struct job *j);
void job_run(struct job *j);

#define check_out(j, stream, want) check_str(buf_str(&(j).taken.out[(stream)-1]), want)

/* A shell whose child got the signal first says so with its exit code. */
bool ended_by(const struct job *j, int signo);

/* --- what is left of us on this machine --- */

int count_marked(void);
int count_dirs(void);
void pause_ms(long ms);
/* Whether the count is n within 20 seconds. */
bool becomes(int (*count)(void), int n);
bool becomes_zero(int (*count)(void));

/* Until the command has written something: what it set up before is there then. */
void wait_for_word(const struct job *j);
void run_beside(struct job *j, void *(*other)(void *));

/* --- set-up --- */

/* Programs where every user can run them. */
void set_up(void);
void set_runtime(const char *who);

/* Each test program's main(): runs its own list, as whoever we are and as an ordinary user. */
int run_everything(void (*list)(void));
