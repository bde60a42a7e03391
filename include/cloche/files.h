/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_FILES_H
#define CLOCHE_FILES_H
/* The files of a long-lived sandbox. A session is one connection to a worker inside the room, which
 * resolves every path beneath the room's root: "..", absolute paths and links never lead out.
 *
 * Paths are NUL-terminated strings of any other bytes. Relative paths start at the sandbox's
 * working directory. Returned names can hold any byte but NUL, so escape them before you display
 * them. Everything that the room sends is bounded and checked, but sizes, contents and names are
 * still only what the room claims.
 *
 * Errors: CLOCHE_E_NOT_FOUND, CLOCHE_E_EXISTS, CLOCHE_E_PERMISSION (also for a read-only place),
 * CLOCHE_E_NO_SPACE (disk, quota), CLOCHE_E_LIMIT (the file or the answer is too large) and
 * CLOCHE_E_SYSTEM for the rest; sys_errno holds the exact errno (ENOTDIR, EISDIR, ENOTEMPTY, ELOOP,
 * ENAMETOOLONG, EROFS, EDQUOT, ...). The session stays usable after such an error. After
 * CLOCHE_E_PROTOCOL (the worker violated the protocol) or CLOCHE_E_BROKEN (it died, or was silent
 * for too long) every later call fails the same way: close the session and open another.
 *
 * Threads: a session does one operation at a time and belongs to one thread at a time; only
 * cloche_files_cancel() may be called from any thread. Sessions are independent of each other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_files cloche_files;

/* Start a worker in the sandbox with a user and group of the room. 0, 0: who owns the sandbox's own
 * files, which is root, or its only user. The instance is used during the call only. */
CLOCHE_API int cloche_files_open(const cloche_instance *instance, uint32_t uid, uint32_t gid,
	cloche_files **ret, cloche_err *err);
/* End the worker and free the session. NULL is allowed. */
CLOCHE_API void cloche_files_close(cloche_files *f);

/* Find "NAME", "UID", or either with ":GROUP" or ":GID" in the sandbox's own /etc/passwd and
 * /etc/group. Without a group it is the account's, or the user's number if there is no account.
 * CLOCHE_E_NOT_FOUND: there is no such name. */
CLOCHE_API int cloche_files_find_user(
	cloche_files *f, const char *text, uint32_t *ret_uid, uint32_t *ret_gid, cloche_err *err);

/* Make the running operation (or the next one, if none is running) fail soon with
 * CLOCHE_E_CANCELLED. A file that was being written is discarded. May be called from any thread or
 * a signal handler. The session can be used again afterwards; if the job (cloche/job.h) of an
 * operation is cancelled instead, the session can only be closed. */
CLOCHE_API void cloche_files_cancel(cloche_files *f);

/* Set how long the worker may be silent during an operation, in milliseconds; 0: no limit. Default
 * 60000. Does not apply to watching. */
CLOCHE_API void cloche_files_set_timeout(cloche_files *f, uint64_t milliseconds);

/* From now on: cloche_files_remove() succeeds if there is nothing of that name, and a directory
 * that does not exist is listed as an empty one. Otherwise, and by default, both fail with
 * CLOCHE_E_NOT_FOUND. */
CLOCHE_API void cloche_files_set_lenient(cloche_files *f, bool lenient);

/* --- queries --- */

enum cloche_node_type {
	CLOCHE_NODE_FILE,
	CLOCHE_NODE_DIRECTORY,
	CLOCHE_NODE_SYMLINK,
	CLOCHE_NODE_FIFO,
	CLOCHE_NODE_SOCKET,
	CLOCHE_NODE_CHAR_DEVICE,
	CLOCHE_NODE_BLOCK_DEVICE,
};

typedef struct cloche_file_stat {
	enum cloche_node_type type;
	uint32_t mode;     /* permissions, set-id and sticky bits: 07777 */
	uint32_t uid, gid; /* as seen in the room */
	uint64_t size;     /* bytes */
	uint64_t links;
	uint64_t device, inode; /* equal for two names of one file */
	int64_t mtime_sec;      /* since 1970 */
	uint32_t mtime_nsec;
	/* "file", "directory", "symlink", "fifo", "socket", "char-device", "block-device"; never
	 * freed. */
	const char *type_name;
} cloche_file_stat;

/* If follow is true, examine the target of a symbolic link, else the link itself. */
CLOCHE_API int cloche_files_stat(
	cloche_files *f, const char *path, bool follow, cloche_file_stat *ret, cloche_err *err);

/* Call fn for each entry of a directory, in no particular order, without "." and "..". Entries are
 * not collected in memory, so a directory may be of any size. name is borrowed for the call. fn
 * returns false to stop. */
typedef bool (*cloche_files_list_fn)(const char *name, const cloche_file_stat *st, void *user);
CLOCHE_API int cloche_files_list(
	cloche_files *f, const char *path, cloche_files_list_fn fn, void *user, cloche_err *err);

/* Return the target of a symbolic link in *ret; the caller must free() it. */
CLOCHE_API int cloche_files_readlink(
	cloche_files *f, const char *path, char **ret, cloche_err *err);

/* --- contents --- */

/* Receives a piece of data. Returns 0, or a negative value to abort the operation
 * (CLOCHE_E_CANCELLED). */
typedef int (*cloche_files_sink)(void *user, const void *data, size_t length);
/* Fills data with at most size bytes. Returns their number, 0 at the end, or a negative value to
 * abort (CLOCHE_E_CANCELLED); nothing is written then. */
typedef long (*cloche_files_source)(void *user, void *data, size_t size);

/* Where data comes from; made by one of the functions below, and passed by value, so it never
 * changes: from fn if it is not NULL, else from the descriptor fd up to its end if fd
 * is not negative, else length bytes at data. Everything is borrowed for the call that takes it. */
typedef struct cloche_source {
	const void *data;
	size_t length;
	int fd;
	cloche_files_source fn;
	void *user;
} cloche_source;

static inline cloche_source cloche_from_data(const void *data, size_t length)
{
	cloche_source from = {NULL, 0, -1, NULL, NULL};

	from.data = data;
	from.length = length;
	return from;
}

static inline cloche_source cloche_from_fd(int fd)
{
	cloche_source from = {NULL, 0, -1, NULL, NULL};

	from.fd = fd;
	return from;
}

static inline cloche_source cloche_from_fn(cloche_files_source fn, void *user)
{
	cloche_source from = {NULL, 0, -1, NULL, NULL};

	from.fn = fn;
	from.user = user;
	return from;
}

/* Read at most length bytes (UINT64_MAX: all) of a regular file, starting at offset. */
CLOCHE_API int cloche_files_read(cloche_files *f, const char *path, uint64_t offset,
	uint64_t length, cloche_files_sink sink, void *user, cloche_err *err);
/* Read a whole file into memory: *ret, which the caller must free(), and *ret_length.
 * CLOCHE_E_LIMIT if it is larger than max bytes. */
CLOCHE_API int cloche_files_read_data(cloche_files *f, const char *path, size_t max, void **ret,
	size_t *ret_length, cloche_err *err);

enum cloche_files_write_flags {
	CLOCHE_FILES_APPEND = 1,   /* write at the end of the file */
	CLOCHE_FILES_IN_PLACE = 2, /* write into the file itself instead of replacing it */
	CLOCHE_FILES_PARENTS = 4,  /* make missing directories */
	CLOCHE_FILES_NEW = 8,      /* fail with CLOCHE_E_EXISTS if the file exists */
};
/* Keep the mode of an existing file; a new one gets 0644. */
#define CLOCHE_FILES_KEEP_MODE UINT32_MAX

/* Write a file completely or not at all: the data goes to a temporary file in the same directory,
 * which replaces the file at the end. A symbolic link is followed. With APPEND or IN_PLACE the file
 * is written directly instead. */
CLOCHE_API int cloche_files_write(cloche_files *f, const char *path, unsigned flags, uint32_t mode,
	cloche_source from, cloche_err *err);

/* --- changes --- */

/* parents: make missing parents too, and accept a directory that already exists. */
CLOCHE_API int cloche_files_mkdir(
	cloche_files *f, const char *path, uint32_t mode, bool parents, cloche_err *err);
/* recursive: remove a directory with everything in it. Links are removed, not followed. */
CLOCHE_API int cloche_files_remove(
	cloche_files *f, const char *path, bool recursive, cloche_err *err);
/* Rename within one file system. replace: replace whatever `to` names; otherwise an existing `to`
 * is CLOCHE_E_EXISTS. */
CLOCHE_API int cloche_files_rename(
	cloche_files *f, const char *from, const char *to, bool replace, cloche_err *err);
CLOCHE_API int cloche_files_chmod(
	cloche_files *f, const char *path, uint32_t mode, cloche_err *err);
/* Make path a symbolic link to target (any bytes; it need not exist). */
CLOCHE_API int cloche_files_symlink(
	cloche_files *f, const char *target, const char *path, cloche_err *err);

/* --- watching --- */

enum cloche_files_change {
	CLOCHE_FILES_CREATED,
	CLOCHE_FILES_MODIFIED, /* contents */
	CLOCHE_FILES_WRITTEN,  /* closed by a writer */
	CLOCHE_FILES_CHANGED,  /* mode, owner, times */
	CLOCHE_FILES_DELETED,
	CLOCHE_FILES_MOVED_FROM, /* the two events share a cookie */
	CLOCHE_FILES_MOVED_TO,
	CLOCHE_FILES_GONE,     /* the watched object is gone: the last event */
	CLOCHE_FILES_OVERFLOW, /* events were lost: read everything again */
};

typedef struct cloche_files_event {
	enum cloche_files_change change;
	bool is_directory;
	uint32_t cookie;  /* 0: none */
	const char *path; /* relative to what is watched, "" for itself; borrowed */
	/* "created", "modified", "written", "changed", "deleted", "moved-from", "moved-to", "gone",
	 * "overflow"; never freed. */
	const char *change_name;
} cloche_files_event;

/* Report changes of a file, or of the entries of a directory (recursive: of everything below it).
 * Return 0 when fn returns false or the watched object is gone; cloche_files_cancel() ends it too.
 * ready (may be NULL) is called once, as soon as every later change will be seen. */
typedef bool (*cloche_files_watch_fn)(const cloche_files_event *event, void *user);
CLOCHE_API int cloche_files_watch(cloche_files *f, const char *path, bool recursive,
	void (*ready)(void *user), cloche_files_watch_fn fn, void *user, cloche_err *err);

/* --- trees --- */

/* What was transferred. Sockets cannot be; they are left out and counted. */
typedef struct cloche_files_moved {
	uint64_t entries, bytes, left_out;
} cloche_files_moved;

/* Call fn from time to time with the number of bytes transferred so far. */
typedef void (*cloche_files_progress_fn)(uint64_t bytes, void *user);
CLOCHE_API void cloche_files_on_progress(cloche_files *f, cloche_files_progress_fn fn, void *user);

/* Read a directory with everything in it (or a single file) as a tar stream (pax). contents:
 * entries are named relative to the directory ("./a"), otherwise they begin with its own name
 * ("dir/a"). The stream from the room is rewritten: the call fails if an entry, when unpacked,
 * would lead out of the tree or through a link, or is a device. Set-id bits are dropped, and user 0
 * owns everything. */
CLOCHE_API int cloche_files_tar_get(cloche_files *f, const char *path, bool contents,
	cloche_files_sink sink, void *user, cloche_err *err);
/* Unpack a tar stream (ustar, pax, GNU) beneath a directory, which is made if it is missing. The
 * call fails if an entry would lead out, goes through a symbolic link, or is a device. Set-id bits
 * are dropped; owners are kept if that is possible. */
CLOCHE_API int cloche_files_tar_put(
	cloche_files *f, const char *path, cloche_source from, cloche_err *err);

/* Copy between the host and the room, entry by entry: `to` becomes a copy of `from`, or is merged
 * with it. Modes, times and links are kept. On the host everything belongs to the caller, with the
 * umask applied; inside it belongs to the room's user 0. Existing files are replaced as a whole.
 * ret may be NULL.
 *
 * On the host, symbolic links that a room may have left are not followed. A link on the way to
 * host_from or host_to is followed only if it lies in the home directory, in a directory owned by
 * root while the caller is not root, or, if the caller is root, in "/", /etc, /usr (except
 * /usr/local) or /var. If host_from itself is a link, the link is copied. If host_to is a link, the
 * call is refused. A path that leads to credentials (as in cloche_sandbox_add_mount()) or contains
 * them is refused too, unless it names them exactly. Every refusal is CLOCHE_E_DENIED. */
CLOCHE_API int cloche_files_upload(cloche_files *f, const char *host_from, const char *to,
	cloche_files_moved *ret, cloche_err *err);
CLOCHE_API int cloche_files_download(cloche_files *f, const char *from, const char *host_to,
	cloche_files_moved *ret, cloche_err *err);

/* Copy the bytes and permissions of one regular file, by the same rules on the host; in the room
 * links are followed. The file gets its name when it is complete, and replaces a file or link of
 * that name. */
CLOCHE_API int cloche_files_upload_file(
	cloche_files *f, const char *host_from, const char *to, cloche_err *err);
CLOCHE_API int cloche_files_download_file(
	cloche_files *f, const char *from, const char *host_to, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
