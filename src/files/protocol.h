/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a client and the file worker in a room. No descriptors are passed.
 * The worker is inside the room and not trusted: the client bounds and checks everything.
 *
 *   worker -> client:  READY once, first
 *   client -> worker:  REQUEST, one at a time; more than one at a time ends the worker, except
 *                      that REQUEST, DATA and END of WRITE_SMALL may follow those of another
 *                      WRITE_SMALL: the answers come in the same order
 *   worker -> client:  answers of the operation, then DONE or ERROR; then the next may come
 *
 *   operation                 client sends after REQUEST      worker sends before DONE or ERROR
 *   READ, TAR_GET             -                               DATA...
 *   WRITE, TAR_PUT            DATA... and END or CANCEL       -  (ERROR may come before END: the
 *                                                             client then still ends its data)
 *   WRITE_SMALL               DATA... and END  or CANCEL      -  (the same; the error's entry is
 *                                                             the number, from 0, of the file that
 *                                                             failed: those behind it are not
 *                                                             written)
 *   LIST                      -                               ENTRIES...
 *   STAT                      -                               STAT_IS
 *   READLINK                  -                               TARGET
 *   WATCH                     -                               WATCHING, EVENTS...
 *   MKDIR, REMOVE, RENAME,    -                               -
 *   CHMOD, SYMLINK
 *
 * CANCEL ends an operation with ERROR (ECANCELED), unless it has just ended by itself. Without an
 * operation CANCEL is ignored. ALIVE may come at any time during an operation. Data flows as
 * fast as the reader takes it: the socket is the only buffer. */

#include "files/error.h"
#include "ipc/message.h"
#include <stdint.h>
#include <sys/stat.h>

enum {
	FILES_VERSION = 1,
	FILES_CHUNK = 128 * 1024,    /* largest piece of data */
	FILES_MAX_PATH = 256 * 1024, /* longer than the kernel's limit, as paths are walked */
	FILES_MAX_PAYLOAD = 2 * FILES_MAX_PATH + 1024,
	FILES_MAX_OUT = 2 * FILES_MAX_PAYLOAD,
	FILES_MAX_NAME = 255,
	FILES_MAX_TARGET = 4096,     /* of a symbolic link */
	FILES_MAX_SMALL = 64 * 1024, /* contents of one file of WRITE_SMALL */
};

enum files_frame {
	/* client -> worker */
	FILES_REQUEST = 1, /* struct files_request */
	FILES_END,         /* nothing: end of the client's data */
	FILES_CANCEL,      /* nothing */
	/* both */
	FILES_DATA = 16, /* 1 to FILES_CHUNK bytes; of WRITE_SMALL 1 or more struct files_small */
	/* worker -> client */
	FILES_READY = 32, /* struct files_ready */
	FILES_DONE,       /* struct files_moved */
	FILES_ERROR,      /* struct files_error */
	FILES_STAT_IS,    /* struct files_stat */
	FILES_ENTRIES,    /* 1 or more struct files_entry */
	FILES_TARGET,     /* struct files_target */
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
	FILES_OP_WRITE_SMALL, /* whole files, in their order; its path says nothing */
	FILES_OP_END_
};

enum files_flags {
	FILES_FOLLOW = 1 << 0,    /* STAT: the target of a link */
	FILES_RECURSIVE = 1 << 1, /* REMOVE, WATCH */
	FILES_PARENTS = 1 << 2,   /* WRITE, MKDIR: make missing directories */
	FILES_REPLACE = 1 << 3,   /* RENAME, WRITE: replace an existing target */
	FILES_APPEND = 1 << 4,    /* WRITE */
	FILES_IN_PLACE = 1 << 5,  /* WRITE */
	FILES_CONTENTS = 1 << 6,  /* TAR_GET: names are relative to the directory */
	FILES_OWNERS = 1 << 7,    /* TAR_PUT: set owners if possible */
	FILES_IS_NEW = 1 << 8,    /* TAR_PUT: the directory was made for this, and gets the
				   * attributes that the archive has for "." */
	FILES_FLAGS_ = (1 << 9) - 1,
};

#define FILES_KEEP_MODE UINT32_MAX

#define FILES_REQUEST_FIELDS(F)                                                                    \
	F(ENUM, op, files_op, FILES_OP_END_)                                                       \
	F(U32, flags, .max = FILES_FLAGS_)                                                         \
	F(U32, mode) /* 07777, or FILES_KEEP_MODE */                                               \
	/* READ. TAR_GET: device and inode of the directory into which the archive is unpacked, or \
	 * 0 and 0 if they are not known */                                                        \
	F(U64, offset)                                                                             \
	F(U64, length)                                                                             \
	F(STR, path, .max = FILES_MAX_PATH, .flags = FIELD_NO_NUL | FIELD_NOT_EMPTY)               \
	/* RENAME: new name; SYMLINK: target; else empty */                                        \
	F(STR, other, .max = FILES_MAX_PATH, .flags = FIELD_NO_NUL)
MESSAGE(files, request, FILES_REQUEST, FILES_REQUEST_FIELDS);

/* A file that is written as by WRITE with FILES_PARENTS and FILES_REPLACE. */
#define FILES_SMALL_FIELDS(F)                                                                      \
	F(U32, mode) /* 07777, or FILES_KEEP_MODE */                                               \
	F(STR, path, .max = FILES_MAX_PATH, .flags = FIELD_NO_NUL | FIELD_NOT_EMPTY)               \
	F(STR, data, .max = FILES_MAX_SMALL)
MESSAGE_STRUCT(files_small, FILES_SMALL_FIELDS);

#define FILES_READY_FIELDS(F) F(U32, version)
MESSAGE(files, ready, FILES_READY, FILES_READY_FIELDS);

#define FILES_MOVED_FIELDS(F)                                                                      \
	F(U64, entries)                                                                            \
	F(U64, bytes)                                                                              \
	F(U64, left_out)
MESSAGE(files, moved, FILES_DONE, FILES_MOVED_FIELDS);

/* As in stat(2). */
#define FILES_STAT_FIELDS(F)                                                                       \
	F(U32, mode, .max = S_IFMT | 07777) /* with the type */                                    \
	F(U32, uid)                                                                                \
	F(U32, gid)                                                                                \
	F(U32, mtime_nsec, .max = 999999999)                                                       \
	F(U64, size)                                                                               \
	F(U64, links)                                                                              \
	F(U64, device)                                                                             \
	F(U64, inode)                                                                              \
	F(I64, mtime_sec)
MESSAGE(files, stat, FILES_STAT_IS, FILES_STAT_FIELDS);

/* The name has no '/', and is neither "." nor "..". */
#define FILES_ENTRY_FIELDS(F)                                                                      \
	F(STR, name, .max = FILES_MAX_NAME, .flags = FIELD_NO_NUL | FIELD_NOT_EMPTY)               \
	F(PART, stat, files_stat)
MESSAGE_STRUCT(files_entry, FILES_ENTRY_FIELDS);

#define FILES_TARGET_FIELDS(F) F(STR, target, .max = FILES_MAX_TARGET, .flags = FIELD_NO_NUL)
MESSAGE(files, target, FILES_TARGET, FILES_TARGET_FIELDS);

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

#define FILES_EVENT_FIELDS(F)                                                                      \
	F(ENUM, change, files_change, FILES_CHANGE_END_)                                           \
	F(BOOL, is_directory)                                                                      \
	F(U32, cookie)                                                                             \
	F(STR, path, .max = FILES_MAX_PATH, .flags = FIELD_NO_NUL)
MESSAGE_STRUCT(files_event, FILES_EVENT_FIELDS);

/* --- other frames: return 0 or -errno; false if malformed --- */
_warn_unused_ int files_send_empty(struct chan *c, enum files_frame type);
_warn_unused_ int files_send_error(struct chan *c, const struct files_error *e);
bool files_get_error(struct str payload, struct files_error *ret);
const struct message *files_error_message(void);

void files_stat_from(struct files_stat *ret, const struct stat *st);
