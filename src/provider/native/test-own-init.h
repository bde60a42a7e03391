/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests that make rooms. The test program is its own init: each room executes it again as
 * process 1, where it runs one of the checks of test-inside.c. What those write is compared here.
 * Started by root, everything is tested twice: as an ordinary user, then as root. */

#include "base/fd.h"
#include "fs/fs.h"
#include "provider/native/test-inside.h"
#include "provider/provider.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY_ID = 12345 };

extern char self[PATH_MAX], dir[TAP_DIR_BYTES];
extern struct cloche_err room_err;

/* A path in the test's own directory; one of a few static buffers. */
const char *in_dir(const char *name);
void put_file(const char *name, const char *text);
void fresh_dir(void);

/* What the next room that is started checks: its name, then its arguments. */
extern const char *arguments[15];
extern size_t arguments_n;

void add_argument(const char *arg);

/* The strings are borrowed until the room has been started. */
void spec_for(struct room_spec *s, const char *check_name, ...);

/* Make the room; say why if it cannot be made. */
struct room *start(struct room_spec *s);

/* Everything that the room writes until its end. */
void read_all(struct room *room, struct buf *out);

/* The room has to write just this, and process 1 to exit with 7. */
struct room *finish(struct room *room, const char *expected);
void run(struct room_spec *s);

/* What main() does. */
int test_rooms(int argc, char **argv, void (*all)(void));
