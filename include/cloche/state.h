/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_STATE_H
#define CLOCHE_STATE_H
/* The state of a long-lived sandbox besides its files: environment variables for commands that
 * start from now on, and a key-value storage. Also its operation log, from which files, variables
 * and storage can be restored. cloche-state(5) describes the log's format.
 *
 * A sandbox that was created with the runtime node or python, or with cloche_sandbox_set("record"),
 * is recorded: its log also has what cloche_files_*() does to its files, and stays when the sandbox
 * is gone. In other sandboxes variables and storage last as long as the sandbox. A sandbox with the
 * runtime "shell" has neither, unless cloche_sandbox_set("record") asks for it.
 *
 * Keys have 1 to 4096 bytes, values of the storage at most 16 MiB, and the whole storage 256 MiB. A
 * variable has at most 131071 bytes including its name, and all variables together 1 MiB
 * (CLOCHE_E_LIMIT). Keys and values may be any bytes, except that variables have no NUL and their
 * names no "=".
 *
 * Threads: a handle belongs to one thread at a time. Any number of handles and processes may change
 * a sandbox at the same time; each change is atomic, and the log has the changes in order.
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

/* Open the state of a sandbox, which may have ended. The instance is used during the call only.
 * CLOCHE_E_UNSUPPORTED: the sandbox keeps no state. */
CLOCHE_API int cloche_state_open(
	const cloche_instance *instance, cloche_state **ret, cloche_err *err);
/* Free the handle. NULL is allowed. */
CLOCHE_API void cloche_state_close(cloche_state *state);

/* Look up a value. A variable that the sandbox was made with is found only if it was set here. *ret
 * is borrowed until the next call with this handle, and has a NUL after its *ret_length bytes.
 * CLOCHE_E_NOT_FOUND. */
CLOCHE_API int cloche_state_get(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void **ret, size_t *ret_length, cloche_err *err);
CLOCHE_API int cloche_state_set(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void *value, size_t length, cloche_err *err);
/* It is not an error if the key does not exist. Commands that start later do not have the variable,
 * even if the sandbox was made with it. CLOCHE_E_LIMIT: the names of all variables that were
 * removed and not set again have more than 65536 bytes. */
CLOCHE_API int cloche_state_remove(cloche_state *state, enum cloche_state_part part,
	const void *key, size_t key_length, cloche_err *err);
/* Remove everything from the storage. */
CLOCHE_API int cloche_state_clear(cloche_state *state, cloche_err *err);

/* Call fn for each pair, in the order in which the keys were added; the arguments are borrowed for
 * the call. fn returns false to stop, and must not use the handle. */
typedef bool (*cloche_state_fn)(
	const void *key, size_t key_length, const void *value, size_t length, void *user);
CLOCHE_API int cloche_state_list(cloche_state *state, enum cloche_state_part part,
	cloche_state_fn fn, void *user, cloche_err *err);

/* --- operation logs --- */

typedef struct cloche_oplog cloche_oplog;

/* Open the log of a recorded sandbox (by its id or name; it may be gone), or of a file: one entry
 * per line, or the array that SandboX saves. CLOCHE_E_NOT_FOUND. Whatever reads a file that has
 * something, but no entry, fails with CLOCHE_E_CORRUPT. */
CLOCHE_API int cloche_oplog_open(const char *sandbox, cloche_oplog **ret, cloche_err *err);
CLOCHE_API int cloche_oplog_open_file(const char *path, cloche_oplog **ret, cloche_err *err);
CLOCHE_API void cloche_oplog_free(cloche_oplog *log);
/* The number of bytes that the last reading ignored at the end of a file, because they are part of
 * an entry. 0: none, or the log is that of a sandbox, whose writer may not have finished it. */
CLOCHE_API uint64_t cloche_oplog_torn(const cloche_oplog *log);

/* The bytes of the log and of the requests beside it, as they are now. It differs when one of them
 * has grown since. Requests are counted if there were any when the log was opened. */
CLOCHE_API uint64_t cloche_oplog_size(const cloche_oplog *log);

typedef struct cloche_operation {
	uint64_t number;  /* counts up from 1 */
	uint64_t time_us; /* since 1970; 0: unknown */
	const char *name; /* "fs.write"; "?" if this version does not know it: see json */
	const void *subject, *object; /* path or key; contents, value, path or reference */
	size_t subject_length, object_length;
	bool is_reference; /* object is a reference to contents stored with the log */
	uint32_t mode;     /* UINT32_MAX: unknown */
	const char *json;  /* the entry, as this version writes it */
	uint32_t exec; /* for a file: the command that changed it; 0: from outside, or not known */
} cloche_operation;

/* Call fn for each operation, in order; the operation is borrowed for the call. fn returns false to
 * stop. CLOCHE_E_CORRUPT names the invalid entry. */
typedef bool (*cloche_operation_fn)(const cloche_operation *operation, void *user);
CLOCHE_API int cloche_oplog_read(
	cloche_oplog *log, cloche_operation_fn fn, void *user, cloche_err *err);

/* A request of the sandbox and its answer, as seen inside. They are recorded by
 * cloche_sandbox_set("record") with "full". For a log that is a file, they are in the file next to
 * it whose name ends in ".net". */
typedef struct cloche_request {
	uint64_t number;                        /* increasing */
	uint64_t time_us, ended_us;             /* since 1970; ended_us 0: no end recorded */
	const char *method, *url;               /* ASCII without blanks */
	unsigned status;                        /* 0: no answer recorded */
	const char *refused;                    /* the reason for the refusal; NULL: not refused */
	bool upgraded;                          /* to a protocol whose bytes are not recorded */
	uint64_t request_bytes, response_bytes; /* of the bodies, as far as they are recorded */
	bool request_is_whole, response_is_whole;
	const char *json; /* everything but the bodies, as a log entry: "net.request" */
} cloche_request;

/* Call fn for each request whose number is greater than `after`, in order; the request is borrowed
 * for the call. fn returns false to stop, and may call cloche_oplog_read_body(). It is not an error
 * if there are none. Requests recorded after the first call with this handle are not included.
 * CLOCHE_E_CORRUPT, CLOCHE_E_LIMIT. */
typedef bool (*cloche_request_fn)(const cloche_request *request, void *user);
CLOCHE_API int cloche_oplog_requests(
	cloche_oplog *log, uint64_t after, cloche_request_fn fn, void *user, cloche_err *err);

/* Call fn with the recorded pieces of one body, in order, as they were transferred, including any
 * content coding. fn returns false to stop. CLOCHE_E_NOT_FOUND: there is no request with that
 * number. */
enum cloche_body { CLOCHE_BODY_REQUEST, CLOCHE_BODY_RESPONSE };
typedef bool (*cloche_body_fn)(const void *bytes, size_t length, void *user);
CLOCHE_API int cloche_oplog_read_body(cloche_oplog *log, uint64_t number, enum cloche_body which,
	cloche_body_fn fn, void *user, cloche_err *err);

/* Write the log to fd (borrowed) as one HTML page for reading: commands with their output, turns of
 * an agent, files as diffs, requests. The page needs no other files, and runs nothing that comes
 * from the log. After a failure the output is not a complete page. */
CLOCHE_API int cloche_oplog_report(cloche_oplog *log, int fd, cloche_err *err);

/* The differences between the states after entry `from` and after entry `to` of a log. */
enum cloche_difference_part {
	CLOCHE_DIFFERENCE_FILE,
	CLOCHE_DIFFERENCE_ENV,
	CLOCHE_DIFFERENCE_STORAGE,
};

typedef struct cloche_difference {
	enum cloche_change_kind kind;
	enum cloche_difference_part part;
	const char *name; /* path, variable or key; NUL-terminated */
	size_t name_length;
	/* The contents, value or link target; NULL if there is none, if it is not fully known, or
	 * if it is larger than 1 MiB. The lengths are those of the whole. */
	const void *before, *after;
	uint64_t before_length, after_length;
	uint32_t before_mode, after_mode; /* permission bits; UINT32_MAX: unknown */
	/* For files whose contents are known and are text: hunks as in diff -u, NUL-terminated.
	 * Otherwise NULL. */
	const char *unified;
	size_t unified_length;
} cloche_difference;

/* Call fn for each difference, files first, sorted by name; the difference is borrowed for the
 * call. fn returns false to stop. `from` 0: start before the first entry. Nothing is written.
 * Operations that change neither files nor variables nor storage are ignored. CLOCHE_E_LIMIT if the
 * log is too large for this, CLOCHE_E_NOT_FOUND if contents are missing. */
typedef bool (*cloche_difference_fn)(const cloche_difference *difference, void *user);
CLOCHE_API int cloche_oplog_diff(cloche_oplog *log, uint64_t from, uint64_t to,
	cloche_difference_fn fn, void *user, cloche_err *err);

/* Repeat the operations of a log in a running sandbox, in order. What the sandbox has besides
 * stays, and nothing outside the sandbox is touched. A recorded sandbox records the operations as
 * its own. last is the number of the entry to stop after; 0: all. Stop at the first operation that
 * fails. Skip operations that this version does not know. */
typedef struct cloche_replayed {
	uint64_t done, unknown;
} cloche_replayed;
CLOCHE_API int cloche_oplog_replay(cloche_oplog *log, const cloche_instance *instance,
	uint64_t last, cloche_replayed *ret, cloche_err *err);

/* Create a sandbox like cloche_instance_create(), and repeat the operations of a log in it before
 * anything else: log and last are as for cloche_oplog_replay(), replayed may be NULL. If that
 * fails, or if the caller exits meanwhile, neither the sandbox nor its log is left. */
CLOCHE_API int cloche_instance_create_from(const cloche_sandbox *sb, cloche_oplog *log,
	uint64_t last, cloche_warning_fn fn, void *user, cloche_replayed *replayed,
	cloche_instance **ret, cloche_err *err);

/* Put the directories of the host back as they were before the first command of a sandbox with a
 * full record, which has ended. Only what is still as the sandbox left it is put back: what
 * somebody has changed since stays, and so does what is not on record, or what programs of the host
 * would obey (cloche/planted.h). The log is borrowed until the undo is freed. CLOCHE_E_BUSY: the
 * sandbox runs. CLOCHE_E_UNSUPPORTED: it was not recorded in full, or its log was compacted. */
typedef struct cloche_undo cloche_undo;

enum cloche_undo_state {
	CLOCHE_UNDO_PLANNED, /* it will be put back */
	CLOCHE_UNDO_DONE,    /* it is as it was */
	CLOCHE_UNDO_KEPT,    /* it stays as it is */
};

typedef struct cloche_undo_step {
	enum cloche_undo_state state;
	enum cloche_change_kind kind; /* what putting it back does to the name */
	const char *directory;        /* on the host: an absolute path */
	const char *name;             /* in it: any bytes, NUL-terminated; "": all of the directory;
				       * ".": it itself, of which not all is on record */
	size_t name_length;
	const char *why;     /* it is kept: the reason, else NULL */
	bool mode_only;      /* only its mode is put back */
	const char *unified; /* CLOCHE_UNDO_SHOW: hunks from what it is to what it was, as in
			      * diff -u, if both are text of at most 1 MiB; else NULL */
} cloche_undo_step;

/* Called with each name that the sandbox changed and that is not as it was; the step is borrowed
 * for the call. Returns false to stop. */
typedef bool (*cloche_undo_fn)(const cloche_undo_step *step, void *user);

/* Compare the files with the record. Nothing is changed. *ret_is_whole (may be NULL): whether the
 * record has an end; if the sandbox died, the record lacks what changed last. */
CLOCHE_API int cloche_undo_open(
	cloche_oplog *log, cloche_undo **ret, bool *ret_is_whole, cloche_err *err);
/* Tell what would be done, or do it and tell what was done. Each file is replaced at once, so if
 * this ends early, another undo goes on. */
enum cloche_undo_how { CLOCHE_UNDO_SHOW, CLOCHE_UNDO_DO };
CLOCHE_API int cloche_undo_run(cloche_undo *undo, enum cloche_undo_how how, cloche_undo_fn fn,
	void *user, cloche_err *err);
/* Free the handle. NULL is allowed. */
CLOCHE_API void cloche_undo_free(cloche_undo *undo);

/* For a recorded sandbox: drop operations that later ones have superseded, and remove contents that
 * no log names any more. ret may be NULL. */
typedef struct cloche_compacted {
	uint64_t operations_before, operations_after;
	uint64_t bytes_before, bytes_after;
	uint64_t contents_removed, contents_bytes;
} cloche_compacted;
CLOCHE_API int cloche_oplog_compact(const char *sandbox, cloche_compacted *ret, cloche_err *err);

/* Write the log and the contents that it names to a directory, which is made, as
 * "state-logs/ID.jsonl" and "blobs/sha256-...". cloche_oplog_open_file() can open the file. In it,
 * a file's contents are in the entry itself if they are text and fit (in a line, and all together
 * in 256 MiB). SandboX can replay such entries of "fs.write", "fs.delete", "env.*" and "storage.*".
 * It ignores all other operations, and does not know references and bytes that are no text:
 * cloche-state(5). Operations that this version does not know are exported as they are. On failure
 * nothing is left behind. */
CLOCHE_API int cloche_oplog_export(cloche_oplog *log, const char *directory, cloche_err *err);

/* Remove the log of a sandbox that is not running, else fail with CLOCHE_E_BUSY. */
CLOCHE_API int cloche_oplog_remove(const char *sandbox, cloche_err *err);

/* List the logs. fn returns false to stop. modified_us: microseconds since 1970. */
typedef bool (*cloche_oplog_fn)(
	const char *sandbox, uint64_t bytes, uint64_t modified_us, void *user);
CLOCHE_API int cloche_oplog_list(cloche_oplog_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
