/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Archives as POSIX.1-2017 pax(1) describes them: writing and reading, both as a stream and in
 * constant memory. No files are touched here. */

#include "base/buf.h"
#include "files/error.h"
#include <stdint.h>

enum {
	TAR_BLOCK = 512,
	TAR_MAX_EXTENDED = 1024 * 1024, /* one extended header; also what a name's memory is */
	TAR_MAX_NAME = 256 * 1024,      /* a path or the target of a link, read */
};

enum tar_type {
	TAR_FILE,
	TAR_DIRECTORY,
	TAR_SYMLINK,
	TAR_HARDLINK,
	TAR_FIFO,
	TAR_CHAR_DEVICE,
	TAR_BLOCK_DEVICE,
};

struct tar_entry {
	enum tar_type type;
	struct str path; /* any bytes but NUL, not empty; of a directory without a slash at its end
			  * where it is written */
	struct str link; /* target of TAR_SYMLINK, path of the other entry for TAR_HARDLINK */
	uint32_t mode;   /* 07777 */
	uint64_t uid, gid;
	uint64_t size; /* bytes of data that follow; 0 but for TAR_FILE */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
};

/* --- writing (tar_write.c): all append to out; 0 or a negative errno of buf_add --- */

/* The header, with an extended one before it if the plain one cannot hold everything. */
_warn_unused_ int tar_write_entry(struct buf *out, const struct tar_entry *e);
/* What fills up the last block of an entry's data. */
_warn_unused_ int tar_write_padding(struct buf *out, uint64_t size);
_warn_unused_ int tar_write_end(struct buf *out);

/* --- reading (tar_read.c) --- */

/* What is told of an archive. Each returns 0, or -errno with e filled, which ends the reading. */
struct tar_reader_ops {
	/* e's views are borrowed for the call. Devices come too; their numbers do not. */
	int (*entry)(void *user, const struct tar_entry *entry, struct files_error *e);
	/* Data of the entry told last, n above 0. */
	int (*data)(void *user, const char *p, size_t n, struct files_error *e);
	/* The entry told last is complete. */
	int (*entry_end)(void *user, struct files_error *e);
};

struct tar_reader;

/* NULL on lack of memory. ops and user are borrowed. */
struct tar_reader *tar_reader_new(const struct tar_reader_ops *ops, void *user);
/* NULL is fine; returns NULL. */
struct tar_reader *tar_reader_free(struct tar_reader *r);
DEFINE_CLEANUP(struct tar_reader, tar_reader_free)

/* Takes the next bytes of the archive, in pieces of any size. 0 or -errno with e filled; EBADMSG
 * if it is malformed, EOPNOTSUPP for forms that are not taken (sparse files, several volumes).
 * What comes after the end mark is ignored. Not to be called again after a failure. */
_warn_unused_ int tar_reader_feed(
	struct tar_reader *r, const char *p, size_t n, struct files_error *e);
/* The stream has ended: -EBADMSG if the archive has not. */
_warn_unused_ int tar_reader_finish(struct tar_reader *r, struct files_error *e);
