/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The protocol between a supervisor and the program that keeps the record of its sandbox
 * (cloche-recorder). The recorder is started with this channel, the directory of logs and the
 * directory of contents (record/oplog.h, record/blobs.h).
 *
 * BEGIN comes first, then a TREE for each tree that is scanned and a HIDE for each file in them
 * that is not, then LOOK. The recorder puts the files of the trees on record, or only notes them,
 * and answers with READY. A later LOOK scans them again, if others have put changes of files on
 * record since. The recorder records an EVENT as it is. After ENDED it scans the trees again,
 * records the changes, then the output of the command and the event, and answers with DONE. END
 * does the same a last time; the only answer is the end of the channel. A tree of which the room
 * has a copy is scanned for the first LOOK and for END alone.
 *
 * TROUBLE may come at any time: something could not be recorded, and why. */

#include "ipc/message.h"
#include "ipc/rundir.h"

enum {
	RECORDING_FD = 3,
	RECORDING_FD_LOGS = 4,
	RECORDING_FD_CONTENTS = 5,
	RECORDING_MAX_PATH = 4096,
	RECORDING_MAX_EVENT = 1024 * 1024,
	RECORDING_MAX_PAYLOAD = RECORDING_MAX_EVENT + 4096,
	RECORDING_MAX_TROUBLE = 1024,
};

enum recording_frame {
	RECORDING_BEGIN = 1, /* struct recording_begin */
	RECORDING_TREE,      /* struct recording_tree; 1 fd, O_PATH: a directory or a file */
	RECORDING_LOOK,      /* nothing */
	RECORDING_HIDE,      /* struct recording_hide */
	RECORDING_EVENT,     /* struct recording_event */
	RECORDING_ENDED, /* struct recording_ended; 1 fd if there was output: the log's directory */
	RECORDING_END,   /* struct recording_event */
	RECORDING_READY = 16, /* nothing */
	RECORDING_DONE,       /* struct recording_done */
	RECORDING_TROUBLE,    /* struct recording_trouble */
};

enum recording_kind {
	RECORDING_SANDBOX_START,
	RECORDING_SANDBOX_END,
	RECORDING_EXEC_START,
	RECORDING_KIND_END_
};

/* When a log is synced to the disk. */
enum oplog_sync {
	OPLOG_SYNC_INTERVAL, /* at most a second after appending, and at close */
	OPLOG_SYNC_ALWAYS,   /* before appending returns */
	OPLOG_SYNC_NEVER,    /* left to the kernel */
	OPLOG_SYNC_END_
};

#define RECORDING_BEGIN_FIELDS(F)                                                                  \
	F(STR, id, .max = RUNDIR_ID_BYTES)                                                         \
	F(U64, limit) /* bytes of all contents; 0: a default */                                    \
	F(ENUM, sync, oplog_sync, OPLOG_SYNC_END_)
MESSAGE(recording, begin, RECORDING_BEGIN, RECORDING_BEGIN_FIELDS);

#define RECORDING_TREE_FIELDS(F)                                                                   \
	F(STR, path, .max = RECORDING_MAX_PATH) /* path in the room */                             \
	F(BOOL, layer)  /* upper layer of an overlay: a device 0/0 hides the file below */         \
	F(BOOL, noted)  /* files that exist at the start are not recorded */                       \
	F(BOOL, copied) /* the room has a copy, which comes back when it is over */
MESSAGE_WITH_FD(recording, tree, RECORDING_TREE, RECORDING_TREE_FIELDS);

/* A file that the room does not get: it is not looked at. */
#define RECORDING_HIDE_FIELDS(F)                                                                   \
	F(U64, device)                                                                             \
	F(U64, inode)
MESSAGE(recording, hide, RECORDING_HIDE, RECORDING_HIDE_FIELDS);

MESSAGE_EMPTY(recording, look, RECORDING_LOOK);

/* args: a JSON object. */
#define RECORDING_EVENT_FIELDS(F)                                                                  \
	F(ENUM, kind, recording_kind, RECORDING_KIND_END_)                                         \
	F(STR, args, .max = RECORDING_MAX_EVENT)
MESSAGE_WITH_FDS(recording, event, RECORDING_EVENT_FIELDS);
/* type: RECORDING_EVENT or RECORDING_END. */
_warn_unused_ int recording_send_event(
	struct chan *c, enum recording_frame type, const struct recording_event *m);

/* members: of the event's JSON object, without its braces; the recorder adds the command's
 * output. */
#define RECORDING_ENDED_FIELDS(F)                                                                  \
	F(U32, number) /* the supervisor's number */                                               \
	F(U32, exec)                                                                               \
	F(STR, members, .max = RECORDING_MAX_EVENT)
MESSAGE_WITH_FD(recording, ended, RECORDING_ENDED, RECORDING_ENDED_FIELDS);

MESSAGE_EMPTY(recording, ready, RECORDING_READY);

#define RECORDING_DONE_FIELDS(F) F(U32, number)
MESSAGE(recording, done, RECORDING_DONE, RECORDING_DONE_FIELDS);

#define RECORDING_TROUBLE_FIELDS(F) F(STR, text, .max = RECORDING_MAX_TROUBLE, .flags = FIELD_CUT)
MESSAGE(recording, trouble, RECORDING_TROUBLE, RECORDING_TROUBLE_FIELDS);
