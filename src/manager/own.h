/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A sandbox's directory from the view of its supervisor, which owns it. Its content: ipc/rundir.h
 * and docs/design/formats.md. */

#include "base/buf.h"
#include "base/err.h"
#include "ipc/rundir.h"
#include "provider/provider.h"

struct sandbox_dir {
	int base;                         /* the directory of all sandboxes */
	int fd;                           /* this sandbox's */
	int lock;                         /* held as long as this is open */
	int listen;                       /* listening control socket, -1 until made */
	char word[RUNDIR_WORD_BYTES + 1]; /* that its clients have to know */
	char *id;
	char *name; /* the name that was taken in the list of names, or NULL */
};

#define SANDBOX_DIR_INIT ((struct sandbox_dir){.base = -1, .fd = -1, .lock = -1, .listen = -1})

/* Make and lock the directory of sandbox id. It gets its name only when it is locked. */
_warn_unused_ int sandbox_dir_make(struct sandbox_dir *d, const char *id, struct cloche_err *err);
/* r is the result of writing something in the directory. If the system refused it, add which
 * directory it was and what the user can do. Return r. */
int sandbox_dir_failed(const struct sandbox_dir *d, int r, struct cloche_err *err);

/* Take a name, so that no other sandbox gets it until sandbox_dir_remove (or, after
 * sandbox_dir_leave, sandbox_remove). E_EXISTS with the holder's id in the message. A dead holder
 * loses it. */
_warn_unused_ int sandbox_dir_take_name(
	struct sandbox_dir *d, const char *name, struct cloche_err *err);

/* Call this before the room is made. If the room will own something that could outlive us (a
 * control group), make the directory (if it does not exist yet) and record there what has to be
 * cleaned up. Otherwise do nothing. */
_warn_unused_ int sandbox_dir_plan(struct sandbox_dir *d, const struct provider *provider,
	const struct room_spec *spec, struct cloche_err *err);

/* Replace the record that programs read. Its first member has to be "state"; RECORD_ENDED at the
 * beginning marks an orderly end. */
_warn_unused_ int sandbox_dir_write_record(
	struct sandbox_dir *d, struct str json, struct cloche_err *err);
#define RECORD_ENDED "{\"state\":\"stopped\""

/* Make the listening socket (d->listen) and the word of its clients. */
_warn_unused_ int sandbox_dir_listen(struct sandbox_dir *d, struct cloche_err *err);

/* Remove what the room owned. If that fails, sandboxes_sweep can do it later, unless
 * sandbox_dir_remove is called. */
_warn_unused_ int sandbox_dir_reap(struct sandbox_dir *d, struct cloche_err *err);

/* Remove the directory and its name, and unlock. Fine if nothing was made. */
void sandbox_dir_remove(struct sandbox_dir *d);

/* The same, but directory, record, logs and name stay; the record must begin with RECORD_ENDED. */
void sandbox_dir_leave(struct sandbox_dir *d);
