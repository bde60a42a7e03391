/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Speaks the control protocol frame by frame, to real supervisors of kept sandboxes. */

#include "base/program.h"
#include "client/test-job.h"
#include "manager/execlog.h"
#include "manager/sandboxes.h"
#include "provider/spec.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

enum { PATIENCE_MS = 20000 };

/* One connection. */
struct conn {
	struct chan chan;
	uint32_t last;
};

extern char id[RUNDIR_ID_BYTES + 1];
extern int sandboxes;
extern bool for_one_command; /* begin() makes one that ends with its first process */

void send_all(struct conn *c);

/* The next frame, which has to be of this type. Its payload lives until the next call. */
struct chan_frame next(struct conn *c, uint16_t type);
void drop_conn(struct conn *c);

/* A new kept sandbox; STARTED (or ERROR) is still to be read. */
struct conn begin(const char *name, uint64_t log_bytes);
struct conn create_with(const char *name, uint64_t log_bytes);
struct conn create(void);
/* A connection on which nothing was said yet. */
int connect_to(const char *which);
struct conn attach_to(const char *which);

struct running {
	uint32_t exec, number;
	int out[2]; /* our ends; -1 */
	int fd;     /* that came with STARTED */
};

/* Send EXEC of a shell script. pipes: bit 1, 2: with that stream. */
void ask(struct conn *c, struct running *r, const char *script, unsigned pipes, uint8_t flags,
	bool tty, uint64_t timeout);
void is_started(struct conn *c, struct running *r);
struct ctl_exec_exited has_exited(struct conn *c, const struct running *r);
void run_done(struct running *r);
struct ctl_exec_exited run(struct conn *c, const char *script);

/* Join and wait for the end. */
struct ctl_exec_exited join(struct conn *c, uint32_t number);
void stop_it(struct conn *c);
void remove_it(struct conn *c);
int open_exec_dir(uint32_t number);

/* Everything of one stream (0: of both, in order) in the log. */
void read_log(uint32_t number, int stream, struct buf *ret);

/* Until so many bytes of a stream are in the log. */
void wait_for_log(uint32_t number, int stream, size_t n);

#define check_log(number, stream, want)                                                            \
	do {                                                                                       \
		struct buf log_ = BUF_INIT(64 << 20);                                              \
		read_log(number, stream, &log_);                                                   \
		check_str(buf_str(&log_), want);                                                   \
		buf_done(&log_);                                                                   \
	} while (0)

void check_end_of(int fd, const char *want);
enum sandbox_life life_of(const char *which);
bool record_has(const char *what);
