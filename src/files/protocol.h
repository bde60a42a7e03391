/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a client and the file worker in a room. Neither gives the other a
 * descriptor. The worker is inside and not trusted: the client bounds and checks everything.
 *
 *   worker -> client:  READY once, first
 *   client -> worker:  REQUEST, one at a time; more than one at a time ends the worker
 *   worker -> client:  answers of the operation, then DONE or ERROR, after which the next may come
 *
 *   operation                 client sends after REQUEST      worker sends before DONE or ERROR
 *   READ, TAR_GET             -                               DATA...
 *   WRITE, TAR_PUT            DATA... and END or CANCEL       -  (ERROR may come before END: the
 *                                                             client then still ends its data)
 *   LIST                      -                               ENTRIES...
 *   STAT                      -                               STAT_IS
 *   READLINK                  -                               TARGET
 *   WATCH                     -                               WATCHING, EVENTS...
 *   MKDIR, REMOVE, RENAME,    -                               -
 *   CHMOD, SYMLINK
 *
 * CANCEL ends any operation with ERROR (ECANCELED), or whatever it ended with just before; without
 * one under way it means nothing. ALIVE may come at any time during an operation. Data flows as
 * fast as the reader takes it: the socket is the only buffer. */

#include "files/error.h"
#include "ipc/frame.h"
#include <stdint.h>
#include <sys/stat.h>

enum {
	FILES_VERSION = 1,
	FILES_CHUNK = 128 * 1024,    /* largest piece of data */
	FILES_MAX_PATH = 256 * 1024, /* longer than the kernel's: paths are walked */
	FILES_MAX_PAYLOAD = 2 * FILES_MAX_PATH + 1024,
	FILES_MAX_OUT = 2 * FILES_MAX_PAYLOAD,
	FILES_MAX_NAME = 255,
	FILES_MAX_TARGET = 4096, /* of a symbolic link */
};

enum files_frame {
	/* client -> worker */
	FILES_REQUEST = 1, /* struct files_request */
	FILES_END,         /* nothing: end of the client's data */
	FILES_CANCEL,      /* nothing */
	/* both */
	FILES_DATA = 16, /* 1 to FILES_CHUNK bytes */
	/* worker -> client */
	FILES_READY = 32, /* u32 version */
	FILES_DONE,       /* struct files_moved */
	FILES_ERROR,      /* struct files_error */
	FILES_STAT_IS,    /* struct files_stat */
	FILES_ENTRIES,    /* 1 or more of: str name, struct files_stat */
	FILES_TARGET,     /* str */
	FILES_WATCHING,   /* nothing */
	FILES_EVENTS,     /* 1 or more struct files_event */
	FILES_ALIVE,      /* nothing */
};

enum files_op {
	FILES_OP_READ,
	FILES_OP_WRITE,
	FILES_OP_LIST,
	FILES_OP_STAT,
	FILES_OP_READLINK,
	FILES_OP_MKDIR,
	FILES_OP_REMOVE,
	FILES_OP_RENAME,
	FILES_OP_CHMOD,
	FILES_OP_SYMLINK,
	FILES_OP_WATCH,
	FILES_OP_TAR_GET,
	FILES_OP_TAR_PUT,
	FILES_OP_END_
};

enum files_flags {
	FILES_FOLLOW = 1 << 0,    /* STAT: the target of a link */
	FILES_RECURSIVE = 1 << 1, /* REMOVE, WATCH */
	FILES_PARENTS = 1 << 2,   /* WRITE, MKDIR: missing directories are made */
	FILES_REPLACE = 1 << 3,   /* RENAME, WRITE: what is there is replaced */
	FILES_APPEND = 1 << 4,    /* WRITE */
	FILES_IN_PLACE = 1 << 5,  /* WRITE */
	FILES_CONTENTS = 1 << 6,  /* TAR_GET: names begin in the directory, not with it */
	FILES_OWNERS = 1 << 7,    /* TAR_PUT: owners are set where that is possible */
	FILES_IS_NEW = 1 << 8,    /* TAR_PUT: the directory was made for it, and becomes what the
				   * archive says of "." */
	FILES_FLAGS_ = (1 << 9) - 1,
};

#define FILES_KEEP_MODE UINT32_MAX

struct files_request {
	enum files_op op;
	uint32_t flags;
	uint32_t mode;           /* 07777, or FILES_KEEP_MODE */
	uint64_t offset, length; /* READ. TAR_GET: device and inode of the directory into which it
				  * is unpacked, 0 and 0 where that is not known */
	struct str path;         /* without NUL, not empty */
	struct str other;        /* RENAME: new name; SYMLINK: target; else empty */
};

/* As stat(2) has it. */
struct files_stat {
	uint32_t mode; /* with the type's bits */
	uint32_t uid, gid, mtime_nsec;
	uint64_t size, links, device, inode;
	int64_t mtime_sec;
};

struct files_moved {
	uint64_t entries, bytes, left_out;
};

enum files_change {
	FILES_CREATED,
	FILES_MODIFIED,
	FILES_WRITTEN,
	FILES_CHANGED,
	FILES_DELETED,
	FILES_MOVED_FROM,
	FILES_MOVED_TO,
	FILES_GONE,
	FILES_OVERFLOW,
	FILES_CHANGE_END_
};

struct files_event {
	enum files_change change;
	bool is_directory;
	uint32_t cookie;
	struct str path;
};

/* Each returns 0 or -errno; they append one whole frame. */
_warn_unused_ int files_send_request(struct chan *c, const struct files_request *m);
_warn_unused_ int files_send_empty(struct chan *c, enum files_frame type);
_warn_unused_ int files_send_ready(struct chan *c);
_warn_unused_ int files_send_done(struct chan *c, const struct files_moved *m);
_warn_unused_ int files_send_error(struct chan *c, const struct files_error *e);
_warn_unused_ int files_send_stat(struct chan *c, const struct files_stat *m);
_warn_unused_ int files_send_target(struct chan *c, struct str target);

void files_put_stat(struct wire_out *w, const struct files_stat *m);
void files_put_event(struct wire_out *w, const struct files_event *m);

/* False where malformed; views point into the payload. */
bool files_get_request(struct str payload, struct files_request *ret);
bool files_get_ready(struct str payload, uint32_t *ret_version);
bool files_get_done(struct str payload, struct files_moved *ret);
bool files_get_error(struct str payload, struct files_error *ret);
bool files_get_stat(struct wire_in *r, struct files_stat *ret);
/* A name of one entry: not empty, no '/', no NUL, neither "." nor "..". */
bool files_get_name(struct wire_in *r, struct str *ret);
bool files_get_target(struct str payload, struct str *ret);
bool files_get_event(struct wire_in *r, struct files_event *ret);

void files_stat_from(struct files_stat *ret, const struct stat *st);
