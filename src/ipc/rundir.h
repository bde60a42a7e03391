/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where sandboxes that run can be found: one private directory of the user, in it one directory a
 * sandbox, named by its id. */

#include "base/err.h"
#include "base/str.h"

/* Names in a sandbox's directory. */
#define RUNDIR_LOCK "lock"           /* flock'ed by the supervisor as long as it lives */
#define RUNDIR_RECORD "record.json"  /* for people and programs that list sandboxes */
#define RUNDIR_MADE "made.json"      /* of a kept sandbox that runs: sandbox/store.h */
#define RUNDIR_OWNED "owned"         /* provider's name, then its record: what to clean up */
#define RUNDIR_LOOK "look"           /* for the look after a crash */
#define RUNDIR_SOCKET "control.sock" /* ipc/control.h */
/* Of a kept sandbox: one directory a process, named by its number, with
 *   meta.json   what was started and, once it has ended, how; written whole
 *   out         its output, both streams in the order in which they came, byte N at offset N. Old
 *               output is given up by punching holes; what is kept begins at the first data
 *   index       which stream: 8 bytes little-endian for each change, offset << 1 | (1: stderr) */
#define RUNDIR_EXECS "exec"
#define RUNDIR_MESSAGES "messages" /* what supervisor, gateway and broker write to stderr */
#define RUNDIR_META "meta.json"
#define RUNDIR_OUT "out"
#define RUNDIR_INDEX "index"

/* The path: $CLOCHE_RUNTIME_DIR; else /run/cloche for root; else $XDG_RUNTIME_DIR/cloche (if
 * that is not set /run/user/UID/cloche); else (and if that cannot be used) /tmp/cloche-UID.
 * Makes it if missing and returns a descriptor; an error if it is not ours alone. */
_warn_unused_ int rundir_open(struct cloche_err *err);

/* The same without $CLOCHE_RUNTIME_DIR: for what is kept for all sandboxes of the person, wherever
 * they are controlled. */
_warn_unused_ int rundir_open_usual(struct cloche_err *err);

enum { RUNDIR_ID_BYTES = 29 }; /* "sandbox-" and 21 of [a-z0-9] */

/* A fresh id into ret[RUNDIR_ID_BYTES + 1]. */
void rundir_make_id(char *ret);
/* Whether a name has the form of an id. */
bool rundir_is_id(struct str name);
