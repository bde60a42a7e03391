/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is known of a directory and its copy: for each path what both sides had when they were last
 * alike, which is kept in a file, and while they are compared what each of them has now. */

#include "base/err.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "ipc/message.h"
#include "sync/ignore.h"
#include <linux/limits.h>

enum { SYNC_MAX_PATHS = 512 * 1024 * 1024 }; /* bytes of all paths together */

enum sync_type { SYNC_ABSENT, SYNC_FILE, SYNC_DIRECTORY, SYNC_LINK, SYNC_TYPE_END_ };

struct sync_time {
	int64_t sec;
	uint32_t nsec;
};

/* What is seen of a name without reading what it has. */
struct sync_facts {
	enum sync_type type;
	uint32_t mode; /* 0777; 0 of a link */
	uint64_t size; /* 0 of a directory */
	struct sync_time mtime;
};

/* What both sides had. One whose time was almost now when it was read is unsure: it may have
 * changed since without a change of its time. */
struct sync_before {
	enum sync_type type; /* SYNC_ABSENT: they were never alike */
	bool unsure_here, unsure_there;
	uint32_t mode;
	uint64_t size;
	struct sync_time here, there;
	uint8_t digest[SHA256_BYTES]; /* of a file's contents or a link's target */
};

struct sync_node {
	struct sync_before before;
	struct sync_facts here, there;
	uint8_t digest[SHA256_BYTES]; /* of what is here, if hashed is set */
	bool hashed;
	bool blind;     /* nothing is decided about it: it could not be looked at */
	bool mode_only; /* what changed here is its mode */
	bool settle;    /* a directory that gets its mode (settle_mode) at the end */
	bool opened;    /* a directory here that could not be changed */
	bool made;      /* sent by this push, or made here by this pull */
	bool unsteady;  /* it changed while it was read */
	uint8_t action; /* enum sync_action */
	uint32_t settle_mode;
	char *to;                   /* where it is here instead of its path; NULL: there */
	struct ignore_rules *rules; /* of this directory, or NULL */
	UT_hash_handle hh;
	char path[]; /* from the top, without a slash at either end */
};

enum sync_phase {
	SYNC_FRESH, /* nothing was sent */
	SYNC_BEGUN, /* the first push has begun: what is there is ours, and not whole */
	SYNC_WHOLE,
	SYNC_PHASE_END_
};

/* A zeroed one is fresh. */
struct sync_state {
	enum sync_phase phase;
	struct sync_node *nodes;
	size_t paths; /* bytes */
};

void sync_state_done(struct sync_state *s);
static inline void sync_state_donep(struct sync_state *s)
{
	sync_state_done(s);
}

/* Return the node of a path, or NULL. */
struct sync_node *sync_state_find(const struct sync_state *s, struct str path);
/* Return the node of a path (shorter than PATH_MAX), which is made if there is none. Return NULL on
 * lack of memory, or if the paths are too many. */
struct sync_node *sync_state_add(struct sync_state *s, struct str path);
/* Return all nodes (heap), each directory right before what is in it; NULL on lack of memory. */
struct sync_node **sync_state_sorted(const struct sync_state *s);
/* Forget what each side has now, and nodes that were never alike. */
void sync_state_settle(struct sync_state *s);

/* Read the state of a file from its beginning. An empty file is a fresh state. E_CORRUPT: it is
 * none, or of another version. */
_warn_unused_ int sync_state_read(int fd, struct sync_state *ret, struct cloche_err *err);
/* Write it to the file, which is open for both. Whatever kills us meanwhile, the file has the old
 * state or the new one. */
_warn_unused_ int sync_state_write(int fd, const struct sync_state *s, struct cloche_err *err);

/* Whether this is a path as nodes have: names of 1 to 255 bytes between single slashes, none of
 * them "." or "..". */
bool sync_path_is_clean(struct str path);

static inline bool sync_time_eq(struct sync_time a, struct sync_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

/* --- in the file --- */

#define SYNC_RECORD_FIELDS(F)                                                                      \
	F(ENUM, type, sync_type, SYNC_TYPE_END_)                                                   \
	F(BOOL, unsure_here)                                                                       \
	F(BOOL, unsure_there)                                                                      \
	F(U32, mode, .max = 0777)                                                                  \
	F(U32, here_nsec, .max = 999999999)                                                        \
	F(U32, there_nsec, .max = 999999999)                                                       \
	F(I64, here_sec)                                                                           \
	F(I64, there_sec)                                                                          \
	F(U64, size)                                                                               \
	F(BYTES, digest, SHA256_BYTES)                                                             \
	F(STR, path, .max = PATH_MAX - 1, .flags = FIELD_NO_NUL | FIELD_NOT_EMPTY)
MESSAGE_STRUCT(sync_record, SYNC_RECORD_FIELDS);
