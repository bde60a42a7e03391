/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A provider makes a room with an init in it and takes it down again. Everything else happens over
 * the control socket and is the same for all providers.
 *
 * What a program that becomes process 1 of a room (cloche-init) finds:
 *   - descriptor 3: its end of the control socket (a connected unix stream socket, blocking);
 *     0, 1 and 2: /dev/null; no other descriptor;
 *   - working directory /; umask 022; default signal dispositions, nothing blocked; an empty
 *     environment; SIGKILL as soon as the program that called create dies;
 *   - already narrowed, for good: no_new_privs, the capability sets of caps.h, the system call
 *     filters of seccomp.h, Landlock, resource limits. It need not do any of that again, and cannot
 *     undo it. openat2() may fail with ENOSYS (see seccomp.h);
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

enum { ROOM_CONTROL_FD = 3, ROOM_UNENFORCED_MAX = 8 };

struct room_usage {
	uint64_t cpu_usec;
	uint64_t memory_bytes, memory_peak_bytes; /* 0 if unknown */
	uint64_t pids, pids_peak;                 /* 0 if unknown */
	uint64_t io_read_bytes, io_write_bytes;   /* from and to storage; 0 if unknown */
	uint64_t oom_kills;                       /* processes that the memory limit killed */
	bool pids_refused;                        /* the pids limit refused a fork at least once */
	bool sampled; /* a peak is only the highest value seen so far: frequent calls make it more
		       * exact */
};

struct room_exit {
	bool exited;     /* else ended by signal */
	int status;      /* exit status of process 1, or the signal */
	bool oom_killed; /* the memory limit killed something in the room */
};

/* What every room has; a provider's own struct begins with it. */
struct room {
	const struct provider *provider;
	pid_t pid;         /* of process 1 on the host; 0: none yet */
	int control_fd;    /* our end of the control socket; the room closes it unless it was taken
			    * with TAKE_FD */
	uint32_t uid, gid; /* inside, of a process that no user was named for */
	int watch_fd;      /* readable when the room has ended; owned by the room */
	int config_fd; /* what is ROOM_GIT_CONFIG inside, -1: there is none; owned by the room */
	/* The limits that are not enforced because of limits.best_effort, in words ("memory: ..."),
	 * and what else its maker could not do. Heap. */
	char *unenforced[ROOM_UNENFORCED_MAX];
	unsigned unenforced_n;
	const char *isolation; /* what it says of itself, if that is not what its provider's name
				* says (provider_isolation()); static, or NULL */
	bool reaped;           /* process 1, if it is our child */
	struct room_exit exit;
};

/* TCP over IPv4 and IPv6, then UDP (port 53) over both; -1 if the machine has no IPv6. See
 * jail/netcapture.h for each. ROOM_CAPTURE is the gateway's end of a channel of ipc/capture.h, for
 * a room whose connections come over it, instead of listeners or beside them; otherwise -1. */
enum { ROOM_TCP4, ROOM_TCP6, ROOM_UDP4, ROOM_UDP6, ROOM_CAPTURE, ROOM_LISTENERS };

/* The process that holds a connection. It may be gone when it is looked for. It chooses its own
 * name: any bytes, terminated. */
struct room_owner {
	uint32_t pid; /* as the room sees it */
	char name[16];
	char program[256]; /* path in the room; "" if unknown */
};

enum room_change_kind {
	ROOM_CHANGE_ADDED = 'A',
	ROOM_CHANGE_CHANGED = 'C',
	ROOM_CHANGE_DELETED = 'D',
};

struct room_change {
	enum room_change_kind kind;
	struct str path; /* in the room, beginning with '/'; any bytes; followed by a NUL */
	uint32_t mode;   /* st_mode now; for a deleted file, as it was */
	uint64_t size;   /* of a regular file or link */
};

/* Take one change. Any value but 0 ends the walk, which returns it. */
typedef int (*room_change_fn)(void *user, const struct room_change *c);

enum { PROVIDER_TEXT_MAX = 256 };
/* One feature of this machine that a provider needs or uses. */
struct provider_check {
	const char *name; /* "user namespace" */
	bool works;
	bool required;                  /* no room is possible without it */
	bool unknown;                   /* nobody could say whether it works */
	char detail[PROVIDER_TEXT_MAX]; /* version or kind if it works, else the exact blocker */
	char remedy[PROVIDER_TEXT_MAX]; /* what to do, or what happens without it; "" if it works */
};
typedef void (*provider_check_fn)(void *user, const struct provider_check *check);

/* What probe learns besides; "" if nothing. */
struct provider_about {
	char version[512]; /* of the software that makes the rooms */
	char doubt[512];   /* what could not be tried, and how to find out */
};

/* A place that was asked something; its provider knows what is in it. */
struct provider_asked;

struct provider {
	const char *name; /* "native" */
	const char *path; /* of the provider's program; NULL: it is part of this one */
	const struct limit_way *limits; /* how each is enforced: LIMITS_N rows (limit.h) */

	/* Return 0 if a room could be made here, or an error that names the blocker and hints at
	 * the remedy. Store in ret, which is empty, what it learns. */
	int (*probe)(const struct provider *p, struct provider_about *ret, struct cloche_err *err);
	/* Begin to ask the same of another place, without waiting for its answer, so that one that
	 * says nothing holds up no other. NULL: this provider has no places. */
	int (*ask_place)(const struct provider *p, const char *place, int patience_sec,
		struct provider_asked **ret, struct cloche_err *err);
	/* Wait for the answer, and free asked. Return as probe does, or 1 if nothing answered in
	 * that time. */
	int (*hear_place)(
		struct provider_asked *asked, struct provider_about *ret, struct cloche_err *err);

	/* Append lines of text that name what create might come to own on the host (a cgroup, a
	 * container), for a record that is written before create is called. Append nothing if
	 * nothing would have to be cleaned up. */
	int (*plan)(const struct provider *p, const struct room_spec *spec, struct buf *out,
		struct cloche_err *err);

	/* Make the room and start init; return when init has been executed. spec is borrowed for
	 * the call. An error tells the exact reason, also if it happened inside the room. */
	int (*create)(const struct provider *p, const struct room_spec *spec, struct room **ret,
		struct cloche_err *err);

	/* Send sig to every process of the room. SIGKILL takes down the whole room at once and
	 * cannot be escaped. It is no error if the room has already ended. Do not wait. */
	int (*kill)(struct room *r, int sig, struct cloche_err *err);

	/* Reap process 1 after watch_fd became readable (block until it does) and store how it
	 * ended. A second call gives the same answer. */
	int (*wait)(struct room *r, struct room_exit *ret, struct cloche_err *err);

	/* As plan, for what the room does own. */
	int (*record)(const struct room *r, struct buf *out, struct cloche_err *err);

	/* Remove what such a record names, for a room whose owner died. It is no error if something
	 * is already gone or was never made. Trust the record only as far as its file is trusted.
	 */
	int (*reap)(const struct provider *p, struct str record, struct cloche_err *err);

	/* Kill what is left, wait for it, and free the room. What it owned on the host may be left
	 * to reap, which is asked after the end of every room. NULL is fine. Return NULL. */
	struct room *(*destroy)(struct room *r);

	/* All commands in such a room are who made it: another user is refused. */
	bool has_one_user;

	/* Init may open no terminals in such a room: it gets them from who sends it commands. */
	bool lends_terminals;

	/* Kill one process that init has started in the room, with everything that belongs to it
	 * (CTL_SCOPE_TREE in ipc/control.h), without init's help and whatever user they run as. pid
	 * is the process's id in the room. Return -E_NOT_FOUND if there is none. Do not wait. */
	int (*kill_tree)(struct room *r, pid_t pid, struct cloche_err *err);

	/* Store the usage so far; also works after the end, until destroy. Unknown values are 0. A
	 * peak that the kernel does not keep is the highest value that calls of this function have
	 * seen. */
	int (*usage)(struct room *r, struct room_usage *ret, struct cloche_err *err);

	/* The following are optional: NULL if the provider lacks them. The functions below call
	 * them, or answer with E_UNSUPPORTED or the value for "unknown". */

	/* Call fn for each feature that the provider needs. Takes a few milliseconds. */
	void (*doctor)(provider_check_fn fn, void *user);
	/* The same for a place: what is in the way there is told as a check, so it is no error.
	 * Takes a minute and a half at most. The checks are borrowed. */
	int (*doctor_place)(const struct provider *p, const char *place, provider_check_fn fn,
		void *user, struct cloche_err *err);

	/* Hand over the listeners of a room with ROOM_NET_GATEWAY, once. An open listener keeps the
	 * room's network alive. */
	int (*listeners)(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);

	/* Find the process that holds the TCP connection between these two addresses of one family.
	 * Bounded work. Return false if none is found or the function was called too often. */
	bool (*owner)(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
		struct room_owner *ret);

	/* Make a user of the room the owner of a pipe, so that it can be opened by name. */
	void (*lend)(const struct room *r, int fd, uint32_t uid, uint32_t gid);

	/* For a room whose files are copies: copy them both ways, without waiting. Called again and
	 * again: return 1 if that goes on, and the next call should come when *ret_fd (borrowed
	 * until then) is readable; 0 when all is copied; or an error, when nothing of it goes on.
	 * out (borrowed): where lines of cloche-sync go. */
	int (*sync)(struct room *r, int out, int *ret_fd, struct cloche_err *err);
	/* End that soon: the next call of sync fails. now: do not let it tidy up. */
	void (*sync_stop)(struct room *r, bool now);

	/* Store the layers of a room's root whose spec asked for an overlay: two O_PATH
	 * directories, borrowed, for diff. A copy of one keeps the room's file systems alive. The
	 * room controls their contents: names, links and types are hostile. */
	int (*layers)(const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err);

	/* Walk such layers and call fn with each change, sorted, a directory before what is in it.
	 * Return E_LIMIT or E_SYSTEM if something could not be examined (the rest was reported). */
	int (*diff)(int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err);

	/* The same for what rooms have kept in that directory (spec.keep_dir). E_NOT_FOUND if
	 * nothing was kept. */
	int (*diff_kept)(const char *dir, room_change_fn fn, void *user, struct cloche_err *err);
};

#define PROVIDER_EXTERN_(name) extern const struct provider name##_provider;
PROVIDERS(PROVIDER_EXTERN_)
/* A provider that is a program (provider/program): everything except its name and path. */
extern const struct provider program_provider;

/* Return the provider of exactly that name, or whose program is at that absolute path; NULL with
 * err set if there is none. It is never freed. Any thread, but not while another one registers a
 * name. */
const struct provider *provider_find(struct str name, struct cloche_err *err);
/* Return the provider that would make a room now if the user asked for `name` (NULL: "auto"),
 * without making one; NULL with err set if none works. For PROVIDER_AUTO_OR_NONE, return the
 * provider without isolation if no other works; err then says why they do not. Any thread. */
const struct provider *provider_choose(const char *name, struct cloche_err *err);

/* Destroy the room through its own provider; return NULL. */
struct room *room_free(struct room *r);
DEFINE_CLEANUP(struct room, room_free)

/* Probe it, and store in *ret what that tells. */
_warn_unused_ int provider_about(
	const struct provider *p, struct provider_about *ret, struct cloche_err *err);

/* Fail if place is not NULL and the provider has no places. */
_warn_unused_ int provider_check_place(
	const struct provider *p, const char *place, struct cloche_err *err);
/* Ask a place whether a room could be made there; *ret is for p->hear_place(), which has to be
 * called. Fail if the provider has no places. */
_warn_unused_ int provider_ask_place(const struct provider *p, const char *place, int patience_sec,
	struct provider_asked **ret, struct cloche_err *err);

/* Examine a place. */
_warn_unused_ int provider_doctor_place(const struct provider *p, const char *place,
	provider_check_fn fn, void *user, struct cloche_err *err);

/* Probe it. *ret_surely: it could make a room, and nothing is left that the probe could not try. */
_warn_unused_ int provider_works(
	const struct provider *p, bool *ret_surely, struct cloche_err *err);
/* Return whether that is so for any provider of "auto" that makes rooms: if one could not be made,
 * it is not because this machine has none. */
bool provider_any_works(void);

/* For providers: begin a room, and free what begins it; add to unenforced (nothing if that is
 * full); return whether the room has ended; reap process 1, a child of the caller, unless that was
 * done. */
void room_init(struct room *r, const struct provider *p);
void room_done(struct room *r);
_warn_unused_ int room_add_unenforced(struct room *r, const char *text, struct cloche_err *err);
bool room_has_ended(const struct room *r);
/* Return how results name what the room gives: as provider_isolation(). */
const char *room_isolation(const struct room *r);
struct rusage;
_warn_unused_ int room_reap(struct room *r, struct rusage *ret, struct cloche_err *err);

/* The optional functions. Return false if the provider lacks it. */
bool room_find_owner(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret);
/* Do nothing if the provider lacks it. */
void room_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid);
/* If the provider lacks one of the following, it fails with E_UNSUPPORTED and the reason. */
_warn_unused_ int room_listeners(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);
_warn_unused_ int room_sync(struct room *r, int out, int *ret_fd, struct cloche_err *err);
_warn_unused_ int room_layers(
	const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err);
_warn_unused_ int provider_diff(const struct provider *p, int upper, int lower, room_change_fn fn,
	void *user, struct cloche_err *err);
_warn_unused_ int provider_diff_kept(const struct provider *p, const char *dir, room_change_fn fn,
	void *user, struct cloche_err *err);
