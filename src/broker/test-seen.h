/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: a broker with many streams, whose frames are written down as they come, and
 * origins whose connections the test itself accepts. */

#include "broker/testing.h"
#include "clockwork.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, MOMENT_MS = 100, SEEN_MAX = 2048 };

extern struct rig g;

/* What came of each stream. */
extern struct seen {
	unsigned status, interims;
	bool over, reset;
	size_t bytes;
	unsigned pieces; /* frames that they came in */
	char text[512];  /* its beginning */
} seen[SEEN_MAX];

/* One frame of a stream, if one comes in time. */
bool take_frame(int ms);
void wait_over(uint32_t id);

/* The broker has looked at everything that it was sent before, and said what it has to say. */
void settle(void);
unsigned count_over(uint32_t first, uint32_t last);
void pass(uint64_t usec);

/* Right before so much time has passed nothing has come of the stream. */
void check_may_take(uint32_t id, uint64_t usec);
int listen_at(int backlog, uint16_t *ret_port);

/* A listener with a full queue: whoever connects waits. */
struct busy {
	int fd, fillers[4];
	uint16_t port;
};

void make_busy(struct busy *b);
void busy_done(struct busy *b);

/* Accept a connection and read what comes first. */
int accept_and_read(int listener);
int accept_and_get(int listener, char *ret, size_t size);
void write_z(int fd, const char *text);
void start(const char *yaml, uint16_t port);
void stop(void);
