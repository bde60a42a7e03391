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
#include "provider/names.h"
#include "provider/spec.h"
#include <netinet/in.h>
#include <sys/types.h>

enum { ROOM_CONTROL_FD = 3 };

/* What everybody sees of a room; a provider's own struct begins with it. */
struct room {
	const struct provider *provider;
	int control_fd; /* our end of the control socket; the room closes it unless it was taken
			 * with TAKE_FD */
	int watch_fd;   /* readable when the room has ended; owned by the room */
};

struct room_usage {
	uint64_t cpu_usec;
	uint64_t memory_bytes, memory_peak_bytes; /* 0 if unknown */
	uint64_t pids, pids_peak;                 /* 0 if unknown */
	uint64_t io_read_bytes, io_write_bytes;   /* from and to storage; 0 if unknown */
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

/* TCP over IPv4 and IPv6, then UDP (port 53) over both; -1 if the machine has no IPv6. All are
 * as jail/netcapture.h has them. */
enum { ROOM_TCP4, ROOM_TCP6, ROOM_UDP4, ROOM_UDP6, ROOM_LISTENERS };

/* Who holds a connection. A process may be gone when it is looked for; and what it is called is
 * its own choice: any bytes, terminated. */
struct room_owner {
	uint32_t pid; /* as the room sees it */
	char name[16];
	char program[256]; /* path inside; "" if it is not to be had */
};

enum room_change_kind {
	ROOM_CHANGE_ADDED = 'A',
	ROOM_CHANGE_CHANGED = 'C',
	ROOM_CHANGE_DELETED = 'D',
};

struct room_change {
	enum room_change_kind kind;
	struct str path; /* in the room, beginning with '/'; any bytes; followed by a NUL */
	uint32_t mode;   /* st_mode as it is now; of what was deleted, as it was */
	uint64_t size;   /* of a regular file or link */
};

/* Takes one change; another answer than 0 ends the walk, which returns it. */
typedef int (*room_change_fn)(void *user, const struct room_change *c);

/* One thing that a provider needs, or uses, of this machine. */
struct provider_check {
	const char *name, *detail, *remedy; /* remedy: "" if it works */
	bool works, required;
};
typedef void (*provider_check_fn)(void *user, const struct provider_check *check);

struct provider {
	const char *name; /* "native" */
	const char *path; /* of the program that it is; NULL: it is part of this one */

	/* Says whether a room could be made here: 0, or an error that names the blocker and hints
	 * at the remedy. */
	int (*probe)(const struct provider *p, struct cloche_err *err);

	/* Appends lines of text that name what of the host create might come to own (a cgroup, a
	 * container), for a record that is written before create is called. Nothing is written
	 * if nothing would have to be cleaned up. */
	int (*plan)(const struct provider *p, const struct room_spec *spec, struct buf *out,
		struct cloche_err *err);

	/* Makes the room and starts init; returns when init has been executed. spec is borrowed for
	 * the call. An error tells the exact reason, also if it happened inside. */
	int (*create)(const struct provider *p, const struct room_spec *spec, struct room **ret,
		struct cloche_err *err);

	/* Sends sig to every process of the room (SIGKILL: takes the whole room down at once and
	 * cannot be escaped). A room that has ended already is no error. Does not wait. */
	int (*kill)(struct room *r, int sig, struct cloche_err *err);

	/* Reaps process 1 after watch_fd became readable (blocks until it does) and says how it
	 * ended. May be called again: the same answer. */
	int (*wait)(struct room *r, struct room_exit *ret, struct cloche_err *err);

	/* As plan, for what the room does own. */
	int (*record)(const struct room *r, struct buf *out, struct cloche_err *err);

	/* Removes what such a record names, for a room whose owner died. What is gone already (or
	 * was never made) is no error. The record is trusted only as far as its file is. */
	int (*reap)(const struct provider *p, struct str record, struct cloche_err *err);

	/* Kills what is left, waits for it, removes everything the room owned on the host and frees
	 * it. NULL is fine. Returns NULL. */
	struct room *(*destroy)(struct room *r);

	/* What follows is optional: NULL if the provider lacks it. The functions below ask, and say
	 * so with E_UNSUPPORTED or the answer for "unknown". */

	/* Calls fn for each thing that the provider needs; takes a few milliseconds. Not
	 * thread-safe. */
	void (*doctor)(provider_check_fn fn, void *user);

	/* Process 1 as the host sees it. */
	pid_t (*pid)(const struct room *r);

	/* The i-th limit that limits.best_effort let pass, in words ("memory: ..."); NULL behind
	 * the last. Borrowed. */
	const char *(*unenforced)(const struct room *r, unsigned i);

	/* Kills one process of the room that init has started, with all that belongs to it
	 * (CTL_SCOPE_TREE in ipc/control.h), without init's help and whoever they have become; pid
	 * is what init calls it. -E_NOT_FOUND if there is none. Does not wait. */
	int (*kill_tree)(struct room *r, pid_t pid, struct cloche_err *err);

	/* Figures so far; also after the end, until destroy. What cannot be known is 0. A peak that
	 * the kernel does not keep is the most that calls of this function have seen. */
	int (*usage)(struct room *r, struct room_usage *ret, struct cloche_err *err);

	/* Hands over the listeners of a room with ROOM_NET_GATEWAY, once. An open one keeps the
	 * room's network alive. */
	int (*listeners)(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);

	/* Who holds the TCP connection between these two, of one family. Bounded work; false if
	 * nobody is found, or if it was asked too often. */
	bool (*owner)(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
		struct room_owner *ret);

	/* Gives a pipe to a user of the room, so that it can be opened by name. */
	void (*lend)(const struct room *r, int fd, uint32_t uid, uint32_t gid);

	/* What was changed in the root of a room whose spec asked for an overlay: two O_PATH
	 * directories, borrowed, for diff. A copy of one keeps the room's file systems alive. What
	 * is in them is the inside's doing: names, links and types are hostile. */
	int (*layers)(const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err);

	/* Walks such layers and calls fn with each change, sorted, a directory before what is in
	 * it. E_LIMIT or E_SYSTEM if something could not be looked into (the rest was reported). */
	int (*diff)(int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err);

	/* The same of what rooms have kept in that directory (spec.keep_dir). E_NOT_FOUND if
	 * nothing was. */
	int (*diff_kept)(const char *dir, room_change_fn fn, void *user, struct cloche_err *err);
};

#define PROVIDER_EXTERN_(name) extern const struct provider name##_provider;
PROVIDERS(PROVIDER_EXTERN_)

/* The provider of exactly that name, or whose program is at that absolute path; NULL with err set.
 * What it returns stays. Any thread, but not while one registers a name. */
const struct provider *provider_find(struct str name, struct cloche_err *err);
/* The one that would make a room now for what a person calls a provider (NULL: "auto"), without
 * making one; NULL: none, and err says why. Of PROVIDER_AUTO_OR_NONE that is no room at all if
 * no other works; then err says why they do not. Any thread. */
const struct provider *provider_choose(const char *name, struct cloche_err *err);

/* Destroys through the room's own provider; returns NULL. */
struct room *room_free(struct room *r);
DEFINE_CLEANUP(struct room, room_free)

/* What a room's provider may lack: 0 if the process is not known; */
pid_t room_pid(const struct room *r);
/* NULL; */
const char *room_unenforced(const struct room *r, unsigned i);
/* false; */
bool room_find_owner(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret);
/* nothing is done; */
void room_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid);
/* E_UNSUPPORTED, with the reason. */
_warn_unused_ int room_kill_tree(struct room *r, pid_t pid, struct cloche_err *err);
_warn_unused_ int room_read_usage(struct room *r, struct room_usage *ret, struct cloche_err *err);
_warn_unused_ int room_listeners(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);
_warn_unused_ int room_layers(
	const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err);
_warn_unused_ int provider_diff(const struct provider *p, int upper, int lower, room_change_fn fn,
	void *user, struct cloche_err *err);
_warn_unused_ int provider_diff_kept(const struct provider *p, const char *dir, room_change_fn fn,
	void *user, struct cloche_err *err);
