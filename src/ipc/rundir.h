/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where running sandboxes can be found: one private directory of the user, with one directory per
 * sandbox, named by its id. */

#include "base/err.h"
#include "base/str.h"

/* Names in a sandbox's directory. */
#define RUNDIR_LOCK "lock"           /* flock'ed by the supervisor as long as it lives */
#define RUNDIR_RECORD "record.json"  /* for users and programs that list sandboxes */
#define RUNDIR_MADE "made.json"      /* of a running kept sandbox: sandbox/store.h */
#define RUNDIR_OWNED "owned"         /* provider's name, then its record: what to clean up */
#define RUNDIR_LOOK "look"           /* what to inspect after a crash */
#define RUNDIR_SOCKET "control.sock" /* ipc/control.h */
#define RUNDIR_WORD "word"           /* whoever speaks to the socket proves that it can read this */
/* In a kept sandbox: one directory per process, named by its number, with
 *   meta.json   the command and, once it has ended, its result; always written as a whole
 *   out         its output, both streams in their order of arrival, byte N at offset N. Old output
 *               is dropped by punching holes; the kept part begins at the first data
 *   index       which stream: 8 bytes little-endian for each change, offset << 1 | (1: stderr) */
#define RUNDIR_EXECS "exec"
#define RUNDIR_MESSAGES "messages" /* stderr of supervisor, gateway and broker */
#define RUNDIR_META "meta.json"
#define RUNDIR_OUT "out"
#define RUNDIR_INDEX "index"

/* Open the directory, and make it if it is missing. The path is $CLOCHE_RUNTIME_DIR; else
 * /run/cloche for root, if it can be used; else $XDG_RUNTIME_DIR/cloche (/run/user/UID/cloche if
 * the variable is not set, or names a directory of another user); else, also if that one cannot be
 * used, /tmp/cloche-UID. Return a descriptor, or an error if the directory is not ours, others can
 * write to it, or $CLOCHE_RUNTIME_DIR is not an absolute path. */
_warn_unused_ int rundir_open(struct cloche_err *err);

/* The same without $CLOCHE_RUNTIME_DIR: for files that all sandboxes of the user share. */
_warn_unused_ int rundir_open_usual(struct cloche_err *err);

enum { RUNDIR_ID_BYTES = 29 }; /* "sandbox-" and 21 of [a-z0-9] */

/* Write a new id into ret[RUNDIR_ID_BYTES + 1]. */
void rundir_make_id(char *ret);
/* Return whether a name has the form of an id. */
bool rundir_is_id(struct str name);

/* A socket can be connected to by name from where its directory cannot be read: Landlock, the only
 * wall of provider subprocess, does not guard that. So the supervisor makes a random word in the
 * sandbox's directory, and clients read it there. dir: the sandbox's. */
enum { RUNDIR_WORD_BYTES = 32 };
_warn_unused_ int rundir_word_make(
	int dir, char ret[RUNDIR_WORD_BYTES + 1], struct cloche_err *err);
/* Return 0 or -errno; ret is empty if there is no such word. */
int rundir_word_read(int dir, char ret[RUNDIR_WORD_BYTES + 1]);

enum { RUNDIR_NAME_BYTES = 63 };
/* Check a name that the user gives to a sandbox: letters, digits, '-', '_' and '.', a letter or
 * digit first, and not in the form of an id. E_USAGE. */
_warn_unused_ int rundir_check_name(const char *name, struct cloche_err *err);
