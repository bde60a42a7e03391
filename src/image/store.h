/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The images of a person, below the state directory:
 *
 *   images/index.json, oci-layout, blobs/sha256/HEX   an OCI layout: other programs can read it
 *   images/layers/HEX/t       a layer, unpacked; HEX is the digest of its tar (the diff id)
 *   images/layers/HEX/owners  "UID:GID MODE PATH", a NUL behind each, if owners could not be
 * given images/new-...            what is being made; locked by its maker images/lock held by
 * whoever changes any of this
 *
 * A blob, a layer and the index come to be by a rename, when they are complete and checked. Who
 * only reads needs no lock. A room holds the layers that it uses locked (shared); what is in use is
 * not removed. */

#include "base/buf.h"
#include "image/document.h"
#include <stdbool.h>

struct image_store {
	int dir, blobs, layers; /* owned; -1 in one that is not open */
	char *path;             /* heap */
};
#define IMAGE_STORE_NULL ((struct image_store){.dir = -1, .blobs = -1, .layers = -1})

/* Opens it, and makes it if it is missing. */
_warn_unused_ int image_store_open(struct image_store *s, struct cloche_err *err);
void image_store_close(struct image_store *s);
static inline void image_store_closep(struct image_store *s)
{
	image_store_close(s);
}

/* Waits for the one lock; the descriptor's end gives it back. waiting (may be NULL) is called if
 * somebody else has it. What a crash has left is removed. */
_warn_unused_ int image_store_lock(
	struct image_store *s, void (*waiting)(void *user), void *user, struct cloche_err *err);

/* A new directory of the maker's own, locked, in s->dir; name is 32 bytes. */
_warn_unused_ int image_temp_make(struct image_store *s, char *ret_name, struct cloche_err *err);
void image_temp_remove(struct image_store *s, const char *name);

/* The index; an empty one if there are no images yet. */
_warn_unused_ int image_store_read(
	struct image_store *s, struct image_index *ret, struct cloche_err *err);
/* Under the lock. Everything that was made before is on the disk first. */
_warn_unused_ int image_store_write(
	struct image_store *s, const struct image_index *index, struct cloche_err *err);

/* A small blob's text. E_NOT_FOUND, E_CORRUPT if it is not what its name says. */
_warn_unused_ int image_blob_read(
	struct image_store *s, const char *hex, struct buf *ret, struct cloche_err *err);
bool image_blob_has(const struct image_store *s, const char *hex);
/* Puts a file's bytes in, read from fd (borrowed); E_CORRUPT unless they have this digest and size
 * (0: any). */
_warn_unused_ int image_blob_copy(
	struct image_store *s, int fd, const struct image_blob *want, struct cloche_err *err);
/* The same by giving a file of ours its place: NAME of dir. want->hex is filled if it is empty.
 */
_warn_unused_ int image_blob_move(struct image_store *s, int dir, const char *name,
	struct image_blob *want, struct cloche_err *err);
_warn_unused_ int image_blob_put(
	struct image_store *s, struct str text, struct image_blob *ret, struct cloche_err *err);

/* Manifest and configuration of an image that is stored. */
_warn_unused_ int image_store_manifest(
	struct image_store *s, const char *hex, struct image_manifest *ret, struct cloche_err *err);
_warn_unused_ int image_store_config(struct image_store *s, const struct image_manifest *m,
	struct image_config *ret, struct cloche_err *err);

struct image_freed {
	unsigned layers, blobs, busy; /* busy: layers that a room uses */
	uint64_t bytes;               /* of blobs */
};
/* Under the lock: removes blobs and layers that no image of the index has. */
_warn_unused_ int image_store_collect(struct image_store *s, const struct image_index *index,
	struct image_freed *ret, struct cloche_err *err);
