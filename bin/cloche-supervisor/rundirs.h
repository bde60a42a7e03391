/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The directory of a running sandbox: lock, records, control socket; and the removal of those that
 * crashed supervisors left. */

#include "base/err.h"
#include "base/str.h"
#include "ipc/control.h"
#include "provider/provider.h"

struct sandbox_dir {
	int base;   /* the directory of all sandboxes */
	int fd;     /* this sandbox's */
	int lock;   /* held as long as it is open */
	int listen; /* listening control socket, -1 until made */
	char *id;
};

#define SANDBOX_DIR_INIT ((struct sandbox_dir){.base = -1, .fd = -1, .lock = -1, .listen = -1})

/* Makes and locks the directory of sandbox id. */
_warn_unused_ int sandbox_dir_make(struct sandbox_dir *d, const char *id, struct cloche_err *err);

/* Before the room is made: where it will own something that could outlive us (a control group),
 * makes the directory and writes there what has to be cleaned up. Else nothing; the directory can
 * then be made when the room runs. */
_warn_unused_ int sandbox_dir_plan(struct sandbox_dir *d, const struct provider *provider,
	const struct room_spec *spec, struct cloche_err *err);

/* Writes the record that programs read. */
_warn_unused_ int sandbox_dir_write_record(struct sandbox_dir *d, const struct ctl_start *start,
	const struct room *room, struct cloche_err *err);

/* Makes the listening socket (d->listen). */
_warn_unused_ int sandbox_dir_listen(struct sandbox_dir *d, struct cloche_err *err);

/* Removes the directory and unlocks. Fine where nothing was made. */
void sandbox_dir_remove(struct sandbox_dir *d);

/* Cleans up every directory whose owner died: kills what it left, removes what it owned. Never
 * touches one whose lock is held. base is borrowed. */
void sandbox_dirs_sweep(int base);
