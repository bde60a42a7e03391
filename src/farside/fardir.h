/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The directory of a far room in the other place: ~/.cache/cloche-far/rooms/ID. It has the socket
 * for carriers, the directories of mounts, and a lock that is held as long as the room lives. */

#include "base/err.h"
#include "base/str.h"

/* Go to the directory of all rooms, and make it if it is not there. */
_warn_unused_ int fardir_enter_rooms(struct cloche_err *err);
/* Make it and take its lock. Return a descriptor, which keeps the lock, or negative (E_BUSY: there
 * is such a room). */
int fardir_make(const char *id, struct cloche_err *err);
/* Listen in it. Return a descriptor, or negative. */
int fardir_listen(int dir, struct cloche_err *err);
/* Be the process that listens there, after a fork. Return 0 or -errno. */
_warn_unused_ int fardir_listen_again(int listener);
/* Connect with who listens in that of a room. Return a descriptor, or negative. */
int fardir_connect(const char *id, struct cloche_err *err);
/* Remove it and everything in it. */
void fardir_remove(const char *id);
/* Have whoever holds that room end it, and remove what is left. It is no error if there is none. */
_warn_unused_ int fardir_reap(const char *id, struct cloche_err *err);
/* Programs that are kept in ~/.cache/cloche-far, so that they are sent once. take: have `name`
 * in dir be the one that is called so, if there is one. put: keep that file, if it is what it is
 * called. Both do nothing for what is no such name (far/kept.h). */
void fardir_take_kept(struct str kept, int dir, const char *name);
void fardir_put_kept(struct str kept, int dir, const char *name);
/* Remove what rooms have left whose holders died; some of it, if there is much. */
void fardir_sweep(void);
