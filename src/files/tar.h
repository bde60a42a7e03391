/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Archives as in POSIX.1-2017 pax(1): writing and reading, both as a stream and in constant memory.
 * No files are touched here. */

#include "base/buf.h"
#include "files/error.h"
#include <stdint.h>

enum {
	TAR_BLOCK = 512,
	TAR_MAX_EXTENDED = 1024 * 1024, /* limit of one extended header, and of the memory for it */
	TAR_MAX_NAME = 256 * 1024,      /* when reading: limit of a path or of a link's target */
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
	struct str path; /* any bytes but NUL, not empty; a directory is written without a slash at
			  * its end */
	struct str link; /* target of TAR_SYMLINK, path of the other entry for TAR_HARDLINK */
	uint32_t mode;   /* 07777 */
	uint64_t uid, gid;
	uint64_t size; /* bytes of data that follow; 0 except for TAR_FILE */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
};

/* --- writing (tar_write.c): all append to out and return 0, or buf_add's negative errno --- */

/* Write the header, with an extended one before it if the plain one cannot hold everything. */
_warn_unused_ int tar_write_entry(struct buf *out, const struct tar_entry *e);
/* Fill up the last block of an entry's data. */
_warn_unused_ int tar_write_padding(struct buf *out, uint64_t size);
_warn_unused_ int tar_write_end(struct buf *out);

/* --- reading (tar_read.c) --- */

/* Callbacks for the contents of an archive. Each returns 0, or -errno with e filled, which ends the
 * reading. */
struct tar_reader_ops {
	/* The views in entry are borrowed for the call. Devices are reported, but not their
	 * numbers. */
	int (*entry)(void *user, const struct tar_entry *entry, struct files_error *e);
	/* Data of the last entry, n above 0. */
	int (*data)(void *user, const char *p, size_t n, struct files_error *e);
	/* The last entry is complete. */
	int (*entry_end)(void *user, struct files_error *e);
};

struct tar_reader;

/* Return NULL if memory runs out. ops and user are borrowed. */
struct tar_reader *tar_reader_new(const struct tar_reader_ops *ops, void *user);
/* r may be NULL. Return NULL. */
struct tar_reader *tar_reader_free(struct tar_reader *r);
DEFINE_CLEANUP(struct tar_reader, tar_reader_free)

/* Read the next bytes of the archive, in pieces of any size. Return 0, or -errno with e filled:
 * EBADMSG if it is malformed, EOPNOTSUPP for unsupported forms (sparse files, several volumes).
 * Everything after the end mark is ignored. Do not call again after a failure. */
_warn_unused_ int tar_reader_feed(
	struct tar_reader *r, const char *p, size_t n, struct files_error *e);
/* End the stream. Return -EBADMSG if the archive is incomplete. */
_warn_unused_ int tar_reader_finish(struct tar_reader *r, struct files_error *e);
