/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A provider makes a room with an init in it and takes it down again; everything else happens over
 * the control socket and is the same for all of them.
 *
 * What a program that becomes process 1 of a room (cloche-init) finds:
 *   - descriptor 3: its end of the control socket (a connected unix stream socket, blocking);
 *     0, 1 and 2: /dev/null; no other descriptor;
 *   - working directory /; umask 022; default signal dispositions, nothing blocked; an empty
 *     environment; SIGKILL as soon as the program that called create dies;
 *   - already narrowed, for good: no_new_privs, the capability sets of caps.h, the system call
 *     filters of seccomp.h, Landlock, resource limits. It need not do any of that again, and cannot
 *     undo it. openat2() may answer ENOSYS (see seccomp.h);
 *   - it is dumpable: it should call prctl(PR_SET_DUMPABLE, 0) first of all, so that what it
 *     starts cannot ptrace it.
 *
 * Not thread-safe: a room belongs to the thread that made it (its death ends the room). */

#include "base/buf.h"
#include "base/err.h"
#include "jail/netcapture.h"
#include "provider/names.h"
#include "provider/spec.h"
#include <sys/types.h>

enum { ROOM_CONTROL_FD = 3, ROOM_MAX_UNENFORCED = 8 };

/* The part of a room that every provider fills. A provider's own struct begins with it. */
struct room {
	const struct provider *provider;
	pid_t pid;      /* process 1 of the room as the host sees it; -1 where it cannot be told */
	int pidfd;      /* readable when the room has ended; owned by the room */
	int control_fd; /* our end of the control socket; the room closes it unless it was taken
			 * with TAKE_FD */
	struct netcapture net; /* listeners for the gateway (all -1 with ROOM_NET_NONE); the room
				* closes those that were not taken. Close yours too when the room
				* ends: an open one keeps the network namespace alive */
	/* O_PATH, both -1 where the spec asks for no overlay: the directory in which everything
	 * that was changed in the root lies at its path, and the one in which it lay before
	 * (jail/changes.h tells the difference). Owned by the room, which keeps its file systems
	 * alive as long as one of them is open: a copy that was handed out delays their end. What
	 * is in them is the inside's doing: names, links and types are hostile. */
	int upper_fd, lower_fd;
	uint32_t id_base; /* what the host calls user (and group) 0 of the room where a range of ids
			   * is mapped; else 0 */
	/* What limits.best_effort let pass, in words ("memory: ..."); heap, owned by the room. */
	char *unenforced[ROOM_MAX_UNENFORCED];
	unsigned unenforced_n;
};

struct room_usage {
	uint64_t cpu_usec;
	uint64_t memory_bytes, memory_peak_bytes; /* 0 where unknown */
	uint64_t pids, pids_peak;                 /* 0 where unknown */
	uint64_t io_read_bytes, io_write_bytes;   /* from and to storage; 0 where unknown */
	uint64_t oom_kills;                       /* processes that the memory limit killed */
	bool pids_refused;                        /* the pids limit refused a fork at least once */
	bool sampled; /* a peak is only the most that was seen so far: who asks more often knows
		       * it better */
};

struct room_exit {
	bool exited;     /* else ended by signal */
	int status;      /* exit status of process 1, or the signal */
	bool oom_killed; /* the memory limit killed something in the room */
};

struct provider {
	const char *name; /* "native" */

	/* Says whether a room could be made here: 0, or an error that names the blocker and hints
	 * at the remedy. */
	int (*probe)(struct cloche_err *err);

	/* Appends lines of text that name what of the host create might come to own (a cgroup, a
	 * container), for a record that is written before create is called. Nothing is written
	 * where nothing would have to be cleaned up. */
	int (*plan)(const struct room_spec *spec, struct buf *out, struct cloche_err *err);

	/* Makes the room and starts init; returns when init has been executed. spec is borrowed for
	 * the call. An error tells the exact reason, also where it happened inside. */
	int (*create)(const struct room_spec *spec, struct room **ret, struct cloche_err *err);

	/* Sends sig to every process of the room (SIGKILL: takes the whole room down at once and
	 * cannot be escaped). A room that has ended already is no error. Does not wait. */
	int (*kill)(struct room *r, int sig, struct cloche_err *err);

	/* Kills one process of the room that init has started, with all that belongs to it
	 * (CTL_SCOPE_TREE in ipc/control.h), without init's help and whoever they have become; pid
	 * is what init calls it. -E_NOT_FOUND where there is none. Does not wait. */
	int (*kill_tree)(struct room *r, pid_t pid, struct cloche_err *err);

	/* Reaps process 1 after pidfd became readable (blocks until it does) and says how it ended.
	 * May be called again: the same answer. */
	int (*wait)(struct room *r, struct room_exit *ret, struct cloche_err *err);

	/* Figures so far; also after the end, until destroy. What cannot be known is 0. A peak that
	 * the kernel does not keep is the most that calls of this function have seen. */
	int (*usage)(struct room *r, struct room_usage *ret, struct cloche_err *err);

	/* The same for what the room does own. */
	int (*record)(const struct room *r, struct buf *out, struct cloche_err *err);

	/* Removes what such a record names, for a room whose owner died. What is gone already (or
	 * was never made) is no error. The record is trusted only as far as its file is. */
	int (*reap)(struct str record, struct cloche_err *err);

	/* Kills what is left, waits for it, removes everything the room owned on the host and frees
	 * it. NULL is fine. Returns NULL. */
	struct room *(*destroy)(struct room *r);
};

#define PROVIDER_EXTERN_(name) extern const struct provider name##_provider;
PROVIDERS(PROVIDER_EXTERN_)

/* The provider of exactly that name (names.h), or NULL. */
const struct provider *provider_find(struct str name);

/* Destroys through the room's own provider; returns NULL. */
struct room *room_free(struct room *r);
DEFINE_CLEANUP(struct room, room_free)
