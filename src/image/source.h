/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The source of an image: a directory with an OCI layout, or an archive whose files are stored
 * under numbers in a temporary directory. */

#include "base/buf.h"
#include "image/store.h"
#include "image/unpack.h"

struct source_file {
	char *path;   /* heap */
	char *target; /* of a link, heap; NULL: a file */
	bool hard;    /* target is a path in the archive, else relative to path's directory */
	unsigned number;
};

struct image_source {
	struct image_store *store;  /* borrowed */
	int dir;                    /* owned */
	char temp[IMAGE_TEMP_NAME]; /* of an archive: the name of dir in the store */
	bool archive;
	struct source_file *files; /* heap */
	size_t n;
};
#define IMAGE_SOURCE_NULL ((struct image_source){.dir = -1})

/* Take dir. */
void image_source_init_dir(struct image_source *s, struct image_store *store, int dir);
/* Read an archive from fd (borrowed) to its end. */
_warn_unused_ int image_source_read_archive(struct image_source *s, struct image_store *store,
	int fd, unpack_progress_fn progress, void *user, struct cloche_err *err);
void image_source_done(struct image_source *s);
static inline void image_source_donep(struct image_source *s)
{
	image_source_done(s);
}

bool image_source_has(const struct image_source *s, const char *path);
/* Read a document. E_NOT_FOUND. */
_warn_unused_ int image_source_read(
	const struct image_source *s, const char *path, struct buf *ret, struct cloche_err *err);
/* Store the file, of so many bytes at most, as a blob. blob->hex and blob->size are checked if they
 * are set, and filled. */
_warn_unused_ int image_source_take(const struct image_source *s, const char *path,
	struct image_blob *blob, uint64_t most, struct cloche_err *err);
