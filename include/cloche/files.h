/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_FILES_H
#define CLOCHE_FILES_H
/* The files of a long-lived sandbox. A session is one connection to a worker inside the room, which
 * resolves every path beneath the room's root: "..", absolute paths and links never lead out.
 *
 * Paths are terminated strings of any other bytes; relative ones begin at the sandbox's working
 * directory. Names that come back are bytes too, and may hold anything but NUL: escape them before
 * they are shown. Everything that the inside says is bounded and checked; yet sizes, contents and
 * names are the inside's own word.
 *
 * Errors: CLOCHE_E_NOT_FOUND, CLOCHE_E_EXISTS, CLOCHE_E_PERMISSION (also for a read-only place),
 * CLOCHE_E_NO_SPACE (disk, quota), CLOCHE_E_LIMIT (the file or the answer is too large) and
 * CLOCHE_E_SYSTEM for the rest; sys_errno holds the exact errno (ENOTDIR, EISDIR, ENOTEMPTY, ELOOP,
 * ENAMETOOLONG, EROFS, EDQUOT, ...). After such an error the session goes on. After
 * CLOCHE_E_PROTOCOL (the worker broke the rules) or CLOCHE_E_BROKEN (it died, or was silent for too
 * long) every later call fails the same way: close the session and open another.
 *
 * Threads: a session does one operation at a time and belongs to one thread at a time; only
 * cloche_files_cancel() may be called from anywhere. Sessions are independent of each other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_files cloche_files;

/* Starts a worker in the sandbox, as a user of the room's own (0, 0: its root, as commands run).
 * The instance is used during the call only. */
CLOCHE_API int cloche_files_open(const cloche_instance *instance, uint32_t uid, uint32_t gid,
	cloche_files **ret, cloche_err *err);
/* Ends the worker and frees the session; NULL is fine. */
CLOCHE_API void cloche_files_close(cloche_files *f);

/* Ends the running operation soon (or the next one, if none runs) with CLOCHE_E_CANCELLED; what
 * was being written is not there then. From any thread or a signal handler. */
CLOCHE_API void cloche_files_cancel(cloche_files *f);

/* The longest silence of the worker in the middle of an operation, in milliseconds; 0: for ever.
 * Default 60000. Watching is exempt. */
CLOCHE_API void cloche_files_set_timeout(cloche_files *f, uint64_t milliseconds);

/* --- what there is --- */

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
	uint32_t uid, gid; /* as the inside sees them */
	uint64_t size;     /* bytes */
	uint64_t links;
	uint64_t device, inode; /* tell whether two names are one file */
	int64_t mtime_sec;      /* since 1970 */
	uint32_t mtime_nsec;
} cloche_file_stat;

/* "file", "directory", "symlink", "fifo", "socket", "char-device", "block-device". */
CLOCHE_API const char *cloche_node_type_name(enum cloche_node_type type);

/* follow: of a symbolic link's target, else of the link itself. */
CLOCHE_API int cloche_files_stat(
	cloche_files *f, const char *path, bool follow, cloche_file_stat *ret, cloche_err *err);

/* Calls fn with each entry of a directory, in no order, without "." and "..". Nothing is gathered:
 * a directory may be of any size. name is borrowed for the call. fn returns false to end. */
typedef bool (*cloche_files_list_fn)(const char *name, const cloche_file_stat *st, void *user);
CLOCHE_API int cloche_files_list(
	cloche_files *f, const char *path, cloche_files_list_fn fn, void *user, cloche_err *err);

/* The target of a symbolic link in *ret; free() it. */
CLOCHE_API int cloche_files_readlink(
	cloche_files *f, const char *path, char **ret, cloche_err *err);

/* --- contents --- */

/* Takes a piece of data as it comes; 0, or negative to end the operation (CLOCHE_E_CANCELLED). */
typedef int (*cloche_files_sink)(void *user, const void *data, size_t length);
/* Fills at most size bytes: how many, 0 at the end, negative to give up: nothing is written then
 * (CLOCHE_E_CANCELLED). */
typedef long (*cloche_files_source)(void *user, void *data, size_t size);

/* Reads a regular file from offset on, at most length bytes (UINT64_MAX: all). */
CLOCHE_API int cloche_files_read(cloche_files *f, const char *path, uint64_t offset,
	uint64_t length, cloche_files_sink sink, void *user, cloche_err *err);
/* The whole file into memory: *ret (free() it) and *ret_length; above max bytes CLOCHE_E_LIMIT. */
CLOCHE_API int cloche_files_read_data(cloche_files *f, const char *path, size_t max, void **ret,
	size_t *ret_length, cloche_err *err);

enum cloche_files_write_flags {
	CLOCHE_FILES_APPEND = 1,   /* at the end of what is there */
	CLOCHE_FILES_IN_PLACE = 2, /* into the file itself: for what cannot be replaced */
	CLOCHE_FILES_PARENTS = 4,  /* missing directories are made */
	CLOCHE_FILES_NEW = 8,      /* fails with CLOCHE_E_EXISTS if something is there */
};
/* The mode of a file that is there stays; a new one gets 0644. */
#define CLOCHE_FILES_KEEP_MODE UINT32_MAX

/* Writes a file whole or not at all: into a temporary one beside it, which takes its place at the
 * end. A symbolic link is followed. With APPEND or IN_PLACE it is written directly instead. */
CLOCHE_API int cloche_files_write(cloche_files *f, const char *path, unsigned flags, uint32_t mode,
	cloche_files_source source, void *user, cloche_err *err);
CLOCHE_API int cloche_files_write_data(cloche_files *f, const char *path, unsigned flags,
	uint32_t mode, const void *data, size_t length, cloche_err *err);

/* --- changes --- */

/* parents: missing ones are made, and a directory that is there is fine. */
CLOCHE_API int cloche_files_mkdir(
	cloche_files *f, const char *path, uint32_t mode, bool parents, cloche_err *err);
/* recursive: a directory with everything in it; links are removed, not followed. */
CLOCHE_API int cloche_files_remove(
	cloche_files *f, const char *path, bool recursive, cloche_err *err);
/* Within one file system. replace: what `to` names is replaced, else that is CLOCHE_E_EXISTS. */
CLOCHE_API int cloche_files_rename(
	cloche_files *f, const char *from, const char *to, bool replace, cloche_err *err);
CLOCHE_API int cloche_files_chmod(
	cloche_files *f, const char *path, uint32_t mode, cloche_err *err);
/* Makes path a symbolic link to target (any bytes; it need not exist). */
CLOCHE_API int cloche_files_symlink(
	cloche_files *f, const char *target, const char *path, cloche_err *err);

/* --- watching --- */

enum cloche_files_change {
	CLOCHE_FILES_CREATED,
	CLOCHE_FILES_MODIFIED, /* its contents */
	CLOCHE_FILES_WRITTEN,  /* a writer has closed it */
	CLOCHE_FILES_CHANGED,  /* mode, owner, times */
	CLOCHE_FILES_DELETED,
	CLOCHE_FILES_MOVED_FROM, /* pairs share a cookie */
	CLOCHE_FILES_MOVED_TO,
	CLOCHE_FILES_GONE,     /* what was watched is not there any more: the last event */
	CLOCHE_FILES_OVERFLOW, /* events were lost: look again at everything */
};

typedef struct cloche_files_event {
	enum cloche_files_change change;
	bool is_directory;
	uint32_t cookie;  /* 0: none */
	const char *path; /* below what is watched, "" for itself; borrowed for the call */
} cloche_files_event;

/* "created", "modified", "written", "changed", "deleted", "moved-from", "moved-to", "gone",
 * "overflow". */
CLOCHE_API const char *cloche_files_change_name(enum cloche_files_change change);

/* Reports changes of a file, or in a directory (recursive: in everything below too), until fn
 * returns false, the watched thing is gone (both 0), or cloche_files_cancel(). ready (may be NULL)
 * is called once when everything that happens from now on will be seen. */
typedef bool (*cloche_files_watch_fn)(const cloche_files_event *event, void *user);
CLOCHE_API int cloche_files_watch(cloche_files *f, const char *path, bool recursive,
	void (*ready)(void *user), cloche_files_watch_fn fn, void *user, cloche_err *err);

/* --- trees --- */

/* What was moved; sockets cannot be, and are left out and counted. */
typedef struct cloche_files_moved {
	uint64_t entries, bytes, left_out;
} cloche_files_moved;

/* Told from time to time how much has been moved so far. */
typedef void (*cloche_files_progress_fn)(uint64_t bytes, void *user);
CLOCHE_API void cloche_files_on_progress(cloche_files *f, cloche_files_progress_fn fn, void *user);

/* A directory with everything in it (or a single file) as a tar stream (pax). contents: entries
 * are named from the directory on ("./a"), else they begin with its own name ("dir/a"). What the
 * inside sends is written anew: an archive that would lead out of that tree when it is unpacked, or
 * through a link, or that holds devices, ends it; set-id bits are dropped, and all is user 0's. */
CLOCHE_API int cloche_files_tar_get(cloche_files *f, const char *path, bool contents,
	cloche_files_sink sink, void *user, cloche_err *err);
/* Unpacks a tar stream (ustar, pax, GNU) beneath a directory, which is made if it is missing.
 * Entries that would lead out, go through a symbolic link, or are devices end it with an error;
 * set-id bits are dropped; owners are kept if that is possible. */
CLOCHE_API int cloche_files_tar_put(
	cloche_files *f, const char *path, cloche_files_source source, void *user, cloche_err *err);

/* The same between a directory of the host and one inside, entry by entry: `to` becomes (or is
 * merged with) what `from` is. Modes, times and links are kept; on the host everything belongs to
 * the caller, less what the umask closes, inside to the room's user 0. Files that are there are
 * replaced whole. ret may be NULL.
 *
 * On the host no symbolic link is followed that a room may have left: not on the way to host_from
 * or host_to, unless it lies in the home directory, in a directory that belongs to root while the
 * caller is somebody else, or, for root, in "/", /etc, /usr (but /usr/local) or /var; a host_from
 * that is a link is copied as one, a host_to that is one is refused. A path that leads to
 * credentials (as of cloche_sandbox_add_mount()) or contains them is refused too, unless it names
 * them itself. All that is CLOCHE_E_DENIED. */
CLOCHE_API int cloche_files_upload(cloche_files *f, const char *host_from, const char *to,
	cloche_files_moved *ret, cloche_err *err);
CLOCHE_API int cloche_files_download(cloche_files *f, const char *from, const char *host_to,
	cloche_files_moved *ret, cloche_err *err);

/* A regular file's bytes and permissions alone, by the same rules on the host; inside links are
 * followed. It takes its name when it is complete, in the place of a file or link that has it. */
CLOCHE_API int cloche_files_upload_file(
	cloche_files *f, const char *host_from, const char *to, cloche_err *err);
CLOCHE_API int cloche_files_download_file(
	cloche_files *f, const char *from, const char *host_to, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
