/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* cloche-unpack: reads untrusted archives and writes their contents into one directory, to which it
 * is confined. Started by src/image; the protocol between them is in image/unpack.h. */

#include "base/err.h"
#include "base/sha256.h"
#include <archive.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	UNPACK_DEPTH_MAX = 128,      /* directories in a path of an archive */
	UNPACK_ENTRIES_MAX = 4 << 20 /* in a layer */
};

/* The stream of an archive, decompressed, digested and limited. */
struct stream {
	struct archive *raw; /* decompresses */
	struct archive *tar; /* takes apart */
	struct sha256 digest;
	uint64_t bytes, max; /* decompressed so far; its limit */
	uint64_t told;       /* value of bytes at the last line of progress */
	uint64_t entries;
	struct cloche_err *err;
};

/* Called for each entry, with its path as unpack_path() has made it. */
typedef int (*stream_entry_fn)(
	void *user, struct archive_entry *entry, char *path, struct cloche_err *err);
/* Read fd (borrowed), a tar archive whose bytes may be compressed with gzip or zstd, to its end,
 * also what follows the archive, for the digest. The caller closes s, also after a failure. */
_warn_unused_ int stream_each(struct stream *s, int fd, uint64_t max, stream_entry_fn fn,
	void *user, struct cloche_err *err);
void stream_close(struct stream *s);
/* Set the error of reading s->tar, with its reason. what: the name of an entry, or "". */
int stream_error(const struct stream *s, const char *what, struct cloche_err *err);

/* Clean a path of an archive: drop "." and doubled slashes; "" is the top. Absolute paths, ".." and
 * paths that are too deep or too long are refused (E_CORRUPT). ret has PATH_MAX bytes. */
_warn_unused_ int unpack_path(const char *path, char *ret, struct cloche_err *err);

struct unpack_counts {
	uint64_t entries, bytes;
	uint64_t owners;  /* entries whose owner could not be set, and was noted with the mode */
	uint64_t skipped; /* devices below /dev, sockets */
};

/* Unpack a layer into the directory `tree`, with whiteouts in overlayfs' form. Owners that cannot
 * be set are written to the file `owners`. digest: of the tar. */
_warn_unused_ int unpack_layer(int fd, int tree, int owners, uint64_t max,
	char digest[SHA256_HEX_MAX], struct unpack_counts *ret, struct cloche_err *err);

/* Unpack the files of an archive into dir as "0", "1"... Lines on standard output name them. */
_warn_unused_ int unpack_files(int fd, int dir, uint64_t max, struct cloche_err *err);

/* Write a tar archive to fd: for each line "PATH NAME" of list (a descriptor), the file NAME of dir
 * as PATH. A PATH that ends with a slash is a directory. */
_warn_unused_ int unpack_pack(int fd, int dir, int list, struct cloche_err *err);

int unpack_program(int argc, char **argv);
