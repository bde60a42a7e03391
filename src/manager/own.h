/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A sandbox's directory as its supervisor, who owns it, sees it. What is in it: ipc/rundir.h and
 * docs/design/formats.md. */

#include "base/buf.h"
#include "base/err.h"
#include "provider/provider.h"

struct sandbox_dir {
	int base;   /* the directory of all sandboxes */
	int fd;     /* this sandbox's */
	int lock;   /* held as long as it is open */
	int listen; /* listening control socket, -1 until made */
	char *id;
	char *name; /* the name that is taken in the list of names, or NULL */
};

#define SANDBOX_DIR_INIT ((struct sandbox_dir){.base = -1, .fd = -1, .lock = -1, .listen = -1})

/* Makes and locks the directory of sandbox id. It appears under its name when it is locked. */
_warn_unused_ int sandbox_dir_make(struct sandbox_dir *d, const char *id, struct cloche_err *err);
/* To r, the result of writing something in the directory, adds if that is and what a person can
 * do if the system refused it; returns r. */
int sandbox_dir_failed(const struct sandbox_dir *d, int r, struct cloche_err *err);

/* Takes a name, so that nobody else has it until sandbox_dir_remove (or, after sandbox_dir_leave,
 * sandbox_remove): E_EXISTS with the holder's id in the message. A dead holder's is replaced. */
_warn_unused_ int sandbox_dir_take_name(
	struct sandbox_dir *d, const char *name, struct cloche_err *err);

/* Before the room is made: if it will own something that could outlive us (a control group),
 * makes the directory (if it is not there yet) and writes there what has to be cleaned up. Else
 * nothing. */
_warn_unused_ int sandbox_dir_plan(struct sandbox_dir *d, const struct provider *provider,
	const struct room_spec *spec, struct cloche_err *err);

/* Replaces the record that programs read. Its first member has to be "state"; RECORD_ENDED is what
 * an orderly end is known by. */
_warn_unused_ int sandbox_dir_write_record(
	struct sandbox_dir *d, struct str json, struct cloche_err *err);
#define RECORD_ENDED "{\"state\":\"stopped\""

/* Makes the listening socket (d->listen). */
_warn_unused_ int sandbox_dir_listen(struct sandbox_dir *d, struct cloche_err *err);

/* Removes the directory and its name and unlocks. Fine if nothing was made. */
void sandbox_dir_remove(struct sandbox_dir *d);

/* The same, but directory, record, logs and name stay; the record has to say RECORD_ENDED. */
void sandbox_dir_leave(struct sandbox_dir *d);
