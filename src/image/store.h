/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The images of a user, below the state directory:
 *
 *   images/index.json, oci-layout, blobs/sha256/HEX   an OCI layout that other programs can read
 *   images/layers/HEX/t       a layer, unpacked; HEX is the digest of its tar (the diff id)
 *   images/layers/HEX/owners  owners that could not be set: "UID:GID MODE PATH", each with a NUL
 *   images/new-...            temporary; locked by its maker
 *   images/lock               held while the index is changed, or something is removed
 *   images/loads              locked by each load, together with others; a byte of it by whoever
 *                             unpacks a layer
 *   images/pulls              a byte of it is locked while skopeo is used: image/pull.c
 *
 * A blob, a layer and the index are renamed into place when they are complete and checked. Readers
 * need no lock. A room holds a shared lock on the layers that it uses; they are not removed. */

#include "base/buf.h"
#include "image/document.h"
#include <stdbool.h>

struct image_store {
	int dir, blobs, layers; /* owned; -1 if not open */
	char *path;             /* heap */
};
#define IMAGE_STORE_NULL ((struct image_store){.dir = -1, .blobs = -1, .layers = -1})

/* Open the store, and make it if it is missing. */
_warn_unused_ int image_store_open(struct image_store *s, struct cloche_err *err);
void image_store_close(struct image_store *s);
static inline void image_store_closep(struct image_store *s)
{
	image_store_close(s);
}

/* Wait for the lock of the store; closing the returned descriptor releases it. waiting (may be
 * NULL) is called if the lock is taken. Removes what a crash has left. */
_warn_unused_ int image_store_lock(
	struct image_store *s, void (*waiting)(void *user), void *user, struct cloche_err *err);

/* Keep what is stored from here on until the returned descriptor is closed, though no image of the
 * index uses it yet. Waits for whoever is removing something. */
_warn_unused_ int image_store_begin_load(struct image_store *s, struct cloche_err *err);
/* Return a descriptor that keeps loads from beginning, or -1 if there is one. */
_warn_unused_ int image_store_be_quiet(struct image_store *s);

enum { IMAGE_TEMP_NAME = sizeof("new-") + 16 };
/* Make a new name for something that image_store_lock() may remove. */
void image_temp_name(char ret[IMAGE_TEMP_NAME]);
/* Make a new locked directory in s->dir for the caller, and return its descriptor. */
_warn_unused_ int image_temp_make(
	struct image_store *s, char ret_name[IMAGE_TEMP_NAME], struct cloche_err *err);
void image_temp_remove(struct image_store *s, const char *name);

/* Read the index. It is empty if there are no images yet. */
_warn_unused_ int image_store_read(
	struct image_store *s, struct image_index *ret, struct cloche_err *err);
/* Write the index, under the lock. Everything made before is synced to the disk first. */
_warn_unused_ int image_store_write(
	struct image_store *s, const struct image_index *index, struct cloche_err *err);

/* Read a small blob. E_NOT_FOUND; E_CORRUPT if its digest is wrong. */
_warn_unused_ int image_blob_read(
	struct image_store *s, const char *hex, struct buf *ret, struct cloche_err *err);
bool image_blob_has(const struct image_store *s, const char *hex);
/* Store the bytes of fd (borrowed) as a blob. E_CORRUPT unless they have this digest and size (0:
 * any); E_LIMIT if there are more than most. */
_warn_unused_ int image_blob_copy(struct image_store *s, int fd, const struct image_blob *want,
	uint64_t most, struct cloche_err *err);
/* The same for a file of ours, NAME in dir, by linking it. want->hex is filled if it is empty. */
_warn_unused_ int image_blob_move(struct image_store *s, int dir, const char *name,
	struct image_blob *want, uint64_t most, struct cloche_err *err);
/* Link all blobs into the directory of an OCI layout. What cannot be linked is left out. */
void image_blobs_link(const struct image_store *s, int dir);
_warn_unused_ int image_blob_put(
	struct image_store *s, struct str text, struct image_blob *ret, struct cloche_err *err);

/* Manifest and configuration of a stored image. */
_warn_unused_ int image_store_manifest(
	struct image_store *s, const char *hex, struct image_manifest *ret, struct cloche_err *err);
_warn_unused_ int image_store_config(
	struct image_store *s, const char *hex, struct image_config *ret, struct cloche_err *err);
/* The configuration of a manifest. E_CORRUPT if the two have different layers. */
_warn_unused_ int image_store_config_of(struct image_store *s, const struct image_manifest *m,
	struct image_config *ret, struct cloche_err *err);

struct image_freed {
	unsigned layers, blobs, busy; /* busy: layers that a room uses */
	uint64_t bytes;               /* of blobs */
};
/* Remove blobs and layers that no image of the index uses. Under the lock. While there are loads,
 * nothing is removed; the next call does it. */
_warn_unused_ int image_store_collect(struct image_store *s, const struct image_index *index,
	struct image_freed *ret, struct cloche_err *err);

/* Write these images to out (borrowed) as an archive with an OCI layout. Blobs are not changed. */
_warn_unused_ int image_save(
	struct image_store *s, const struct image_index *images, int out, struct cloche_err *err);
