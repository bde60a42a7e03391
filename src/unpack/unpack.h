/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* cloche-unpack: reads archives that strangers made and writes what is in them into one directory,
 * confined to it. Started by src/image; what goes between is in image/unpack.h. */

#include "base/err.h"
#include "base/sha256.h"
#include <archive.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	UNPACK_DEPTH_MAX = 128,      /* directories in a path of an archive */
	UNPACK_FILES_MAX = 16384,    /* in an archive of an image */
	UNPACK_ENTRIES_MAX = 4 << 20 /* in a layer */
};

/* A stream of an archive, decompressed, digested and bounded. */
struct stream {
	struct archive *raw; /* decompresses */
	struct sha256 digest;
	uint64_t bytes, max; /* decompressed so far, at most */
	uint64_t told;       /* of bytes, when the last line about progress was written */
	struct cloche_err *err;
};

/* Opens fd (borrowed), whose bytes may be compressed with gzip or zstd, as an archive of tar.
 * *ret is for archive_read_next_header(); both are freed by stream_close(). */
_warn_unused_ int stream_open(
	struct stream *s, int fd, uint64_t max, struct archive **ret, struct cloche_err *err);
/* Reads what is left behind the end of the archive, for the digest. */
_warn_unused_ int stream_drain(struct stream *s, struct cloche_err *err);
void stream_close(struct stream *s, struct archive *tar);
/* The error of reading tar, with its reason; what: the name of an entry, or "". */
int stream_error(
	const struct stream *s, struct archive *tar, const char *what, struct cloche_err *err);

/* A path of an archive without "." and doubled slashes; "" for the top. Refused (E_CORRUPT):
 * absolute ones, "..", and what is too deep or too long. ret has PATH_MAX bytes. */
_warn_unused_ int unpack_path(const char *path, char *ret, struct cloche_err *err);

struct unpack_counts {
	uint64_t entries, bytes;
	uint64_t owners;  /* whose owner or mode could not be given, and was written down */
	uint64_t skipped; /* devices below /dev, sockets */
};

/* A layer into the directory `tree`, whiteouts in overlayfs' form; owners that cannot be given go
 * to the file `owners`, a line each. digest: of the tar. */
_warn_unused_ int unpack_layer(int fd, int tree, int owners, uint64_t max,
	char digest[SHA256_HEX_MAX], struct unpack_counts *ret, struct cloche_err *err);

/* The files of an archive into dir, as "0", "1"...; a line of standard output says which is which.
 */
_warn_unused_ int unpack_files(int fd, int dir, uint64_t max, struct cloche_err *err);

/* Writes an archive of tar to fd: for each line "PATH NAME" of list (a descriptor), the file NAME
 * of dir as PATH; a PATH that ends with a slash is a directory. */
_warn_unused_ int unpack_pack(int fd, int dir, int list, struct cloche_err *err);

int unpack_program(int argc, char **argv);
