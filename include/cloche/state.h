/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_STATE_H
#define CLOCHE_STATE_H
/* The state of a long-lived sandbox beside its files: variables that commands that start from now
 * on see, and a storage of keys and values; and its operation log, from which files, variables and
 * storage are made anew. The format of a log: cloche-state(5).
 *
 * A sandbox that was created with a runtime of node or python, or with cloche_sandbox_set_record(),
 * is recorded: its log also has what is done to its files by cloche_files_*() and stays when the
 * sandbox is gone. Variables and storage of any other last as long as the sandbox. One whose
 * runtime is "shell" has neither, unless cloche_sandbox_set_record() asks for it.
 *
 * Keys have 1 to 4096 bytes, values of the storage at most 16 MiB, the storage in all 256 MiB; a
 * variable has at most 131071 bytes with its name, all of them 1 MiB (CLOCHE_E_LIMIT). All of them
 * are bytes; only variables hold no NUL, and their names no "=".
 *
 * Threads: a handle belongs to one thread at a time. Any number of handles and processes may change
 * one sandbox at the same time; each change is whole, and the log has them in their order.
 * Functions that return int return 0 or a negated error code and describe the failure in err (which
 * may be NULL). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff.h"
#include "error.h"
#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_state cloche_state;

enum cloche_state_part { CLOCHE_STATE_ENV, CLOCHE_STATE_STORAGE };

/* Also of a sandbox that has ended. The instance is used during the call only.
 * CLOCHE_E_UNSUPPORTED: it keeps no state. */
CLOCHE_API int cloche_state_open(
	const cloche_instance *instance, cloche_state **ret, cloche_err *err);
/* Frees the handle; NULL is fine. */
CLOCHE_API void cloche_state_close(cloche_state *state);
CLOCHE_API bool cloche_state_is_recorded(const cloche_state *state);

/* *ret is borrowed until the next call with this handle, and has a NUL behind its length bytes.
 * CLOCHE_E_NOT_FOUND. */
CLOCHE_API int cloche_state_get(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void **ret, size_t *ret_length, cloche_err *err);
CLOCHE_API int cloche_state_set(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void *value, size_t length, cloche_err *err);
/* One that is not there is fine. */
CLOCHE_API int cloche_state_remove(cloche_state *state, enum cloche_state_part part,
	const void *key, size_t key_length, cloche_err *err);
/* Empties the storage. */
CLOCHE_API int cloche_state_clear(cloche_state *state, cloche_err *err);

/* Calls fn with each, in the order in which the keys came; what it gets is borrowed for the call.
 * fn returns false to end, and must not use the handle. */
typedef bool (*cloche_state_fn)(
	const void *key, size_t key_length, const void *value, size_t length, void *user);
CLOCHE_API int cloche_state_list(cloche_state *state, enum cloche_state_part part,
	cloche_state_fn fn, void *user, cloche_err *err);

/* --- operation logs --- */

typedef struct cloche_oplog cloche_oplog;

/* The log of a recorded sandbox (its id or name; it may be gone), or of a file: one of lines, or
 * the array that SandboX saves. CLOCHE_E_NOT_FOUND. */
CLOCHE_API int cloche_oplog_open(const char *sandbox, cloche_oplog **ret, cloche_err *err);
CLOCHE_API int cloche_oplog_open_file(const char *path, cloche_oplog **ret, cloche_err *err);
CLOCHE_API void cloche_oplog_free(cloche_oplog *log);

typedef struct cloche_operation {
	uint64_t number;              /* from 1 on, rising */
	uint64_t time_us;             /* since 1970; 0: not known */
	const char *name;             /* "fs.write"; "?" for one that this version does not know */
	const void *subject, *object; /* path or key; contents, value, path or reference */
	size_t subject_length, object_length;
	bool is_reference; /* object names contents that are kept beside the log */
	uint32_t mode;     /* UINT32_MAX: not said */
	const char *json;  /* the entry, as this version writes it */
	uint32_t exec;     /* of a file: the command that changed it; 0: from outside */
} cloche_operation;

/* Calls fn with each operation, in order, borrowed for the call; it returns false to end.
 * CLOCHE_E_CORRUPT names the entry that is none. */
typedef bool (*cloche_operation_fn)(const cloche_operation *operation, void *user);
CLOCHE_API int cloche_oplog_read(
	cloche_oplog *log, cloche_operation_fn fn, void *user, cloche_err *err);

/* The requests of the sandbox and their answers, as those inside saw them, if they are on record
 * (cloche_sandbox_set_record() with "full"; of a file: in one of its name that ends in ".net",
 * beside it). */
typedef struct cloche_request {
	uint64_t number;                        /* rising */
	uint64_t time_us, ended_us;             /* since 1970; ended_us 0: no end is on record */
	const char *method, *url;               /* ASCII without blanks */
	unsigned status;                        /* 0: no answer is on record */
	const char *refused;                    /* why it was; NULL: it was not */
	bool upgraded;                          /* it became something whose bytes are not kept */
	uint64_t request_bytes, response_bytes; /* of the bodies, as far as they are kept */
	bool request_is_whole, response_is_whole;
	const char *json; /* all of it but the bodies, as one entry of a log: "net.request" */
} cloche_request;

/* Calls fn with each whose number is above `after`, in the order in which they came, borrowed for
 * the call; it returns false to end, and may use cloche_oplog_read_body(). Fine if there are none.
 * What was recorded since the first call with this handle does not come. CLOCHE_E_CORRUPT,
 * CLOCHE_E_LIMIT. */
typedef bool (*cloche_request_fn)(const cloche_request *request, void *user);
CLOCHE_API int cloche_oplog_requests(
	cloche_oplog *log, uint64_t after, cloche_request_fn fn, void *user, cloche_err *err);

/* Calls fn with the pieces of one body, in order, as far as it is kept: bytes as they came, with
 * whatever content coding they had. fn returns false to end. CLOCHE_E_NOT_FOUND: there is no
 * request of that number. */
enum cloche_body { CLOCHE_BODY_REQUEST, CLOCHE_BODY_RESPONSE };
typedef bool (*cloche_body_fn)(const void *bytes, size_t length, void *user);
CLOCHE_API int cloche_oplog_read_body(cloche_oplog *log, uint64_t number, enum cloche_body which,
	cloche_body_fn fn, void *user, cloche_err *err);

/* Writes the log to fd (borrowed) as one page of HTML for a person: commands with what they
 * printed, turns of an agent, files as diffs, requests. It needs nothing beside it, and runs
 * nothing that the log brought. On failure what was written is no page. */
CLOCHE_API int cloche_oplog_report(cloche_oplog *log, int fd, cloche_err *err);

/* What differs between what a log says up to entry `from` and up to entry `to`. */
enum cloche_difference_part {
	CLOCHE_DIFFERENCE_FILE,
	CLOCHE_DIFFERENCE_ENV,
	CLOCHE_DIFFERENCE_STORAGE,
};

typedef struct cloche_difference {
	enum cloche_change_kind kind;
	enum cloche_difference_part part;
	const char *name; /* path, variable or key; ended by a NUL */
	size_t name_length;
	/* Contents, value or target of a link; NULL: there is none, or it is not known whole, or
	 * has more than 1 MiB. The lengths are those of the whole. */
	const void *before, *after;
	uint64_t before_length, after_length;
	uint32_t before_mode, after_mode; /* permission bits; UINT32_MAX: not said */
	/* Of files whose contents are known and text: hunks as of diff -u, ended by a NUL. NULL:
	 * none. */
	const char *unified;
	size_t unified_length;
} cloche_difference;

/* Calls fn with each difference, files first, sorted by name, borrowed for the call; it returns
 * false to end. 0 as `from`: before the first entry. Nothing is written anywhere; operations that
 * change neither files nor variables nor storage do not count. CLOCHE_E_LIMIT if the log names
 * too much, CLOCHE_E_NOT_FOUND if contents are missing. */
typedef bool (*cloche_difference_fn)(const cloche_difference *difference, void *user);
CLOCHE_API int cloche_oplog_diff(cloche_oplog *log, uint64_t from, uint64_t to,
	cloche_difference_fn fn, void *user, cloche_err *err);

/* Does again, in a sandbox that runs, what the log says, in its order: what it has besides stays.
 * Nothing outside the sandbox is touched. A recorded one then has the operations on record as if
 * they had been done there. last: the number of the entry to end with; 0: all. An operation
 * that fails there ends it; one that this version does not know is passed over. */
typedef struct cloche_replayed {
	uint64_t done, unknown;
} cloche_replayed;
CLOCHE_API int cloche_oplog_replay(cloche_oplog *log, const cloche_instance *instance,
	uint64_t last, cloche_replayed *ret, cloche_err *err);

/* Of a recorded sandbox: leaves out what later operations have made void, and removes contents that
 * no log names any more. ret may be NULL. */
typedef struct cloche_compacted {
	uint64_t operations_before, operations_after;
	uint64_t bytes_before, bytes_after;
	uint64_t contents_removed, contents_bytes;
} cloche_compacted;
CLOCHE_API int cloche_oplog_compact(const char *sandbox, cloche_compacted *ret, cloche_err *err);

/* Writes the log and the contents it names to a directory that is made: SandboX reads it as its
 * root ("state-logs/ID.jsonl", "blobs/sha256-..."), and cloche_oplog_open_file() the file.
 * Operations that this version does not know are left out. On failure nothing is left. */
CLOCHE_API int cloche_oplog_export(cloche_oplog *log, const char *directory, cloche_err *err);

/* Removes the log of a sandbox that does not run; CLOCHE_E_BUSY. */
CLOCHE_API int cloche_oplog_remove(const char *sandbox, cloche_err *err);

/* The logs that there are. fn returns false to end; modified: microseconds since 1970. */
typedef bool (*cloche_oplog_fn)(
	const char *sandbox, uint64_t bytes, uint64_t modified_us, void *user);
CLOCHE_API int cloche_oplog_list(cloche_oplog_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
