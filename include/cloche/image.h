/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_IMAGE_H
#define CLOCHE_IMAGE_H
/* Images that are stored as roots for sandboxes ("image:NAME", cloche_sandbox_set("root")), in the
 * caller's state directory. They come from archives, registries and container engines, are verified
 * by their digests, and each layer is unpacked once. All functions block; in a job
 * (cloche/job.h) they give way, except while they read and write the disk. A cancelled job stores
 * nothing. Several threads, and several programs, may call them at the same time. An image is named
 * by name[:tag][@sha256:DIGEST], by its digest, or by the beginning of its id. */

#include <cloche/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stored image. Strings and lists are freed with it. */
typedef struct cloche_image {
	size_t size;    /* of this struct in the library: later versions append members */
	const char *id; /* the digest of its configuration, 64 digits, as in container engines */
	const char *const *names; /* "name:tag"; NULL after the last */
	const char *created;      /* the build time that the image states (RFC 3339), or "" */
	uint64_t bytes;           /* of its layers as they were loaded (possibly compressed) */
	size_t layers;
	const char *json; /* everything that is known about the image, as a JSON object */
} cloche_image;

/* Receives one image, borrowed for the call. Returns false to stop the listing. */
typedef bool (*cloche_image_fn)(const cloche_image *image, void *user);
/* Reports the current step and the number of bytes it covers, on the calling thread. Returns false
 * to abort: CLOCHE_E_CANCELLED, and nothing is stored. */
typedef bool (*cloche_image_step_fn)(const char *step, uint64_t bytes, void *user);

/* Call fn for each stored image, sorted by name. */
CLOCHE_API int cloche_image_list(cloche_image_fn fn, void *user, cloche_err *err);

/* Find an image. The caller frees *ret. CLOCHE_E_NOT_FOUND. */
CLOCHE_API int cloche_image_find(const char *name, cloche_image **ret, cloche_err *err);
/* NULL is fine. */
CLOCHE_API void cloche_image_free(cloche_image *image);

struct cloche_image_loading {
	size_t size;               /* of this struct; error.h */
	const char *name;          /* replaces the image's own name; NULL: keep that */
	cloche_image_step_fn step; /* may be NULL */
	cloche_image_fn stored;    /* called for each image at the end; may be NULL */
	void *user;
	/* Filled in: the number of files whose owner could only be noted, and of devices left
	 * out. */
	uint64_t owners_noted, devices_left_out;
};

#define CLOCHE_IMAGE_LOADING_INIT                                                                  \
	{                                                                                          \
		sizeof(struct cloche_image_loading), NULL, NULL, NULL, NULL, 0, 0                  \
	}

/* Load an OCI layout (a directory or an archive) or the output of `docker save` or `podman save`.
 * source is a path; if it is NULL, read an archive from the descriptor fd (borrowed) to its end.
 * Either all of the images are stored, or none. */
CLOCHE_API int cloche_image_load(
	const char *source, int fd, struct cloche_image_loading *loading, cloche_err *err);

/* Get an image by its name: from its registry with skopeo if that is installed, otherwise from what
 * podman or docker have stored on this machine. */
CLOCHE_API int cloche_image_pull(
	const char *name, struct cloche_image_loading *loading, cloche_err *err);

/* Write images to fd (borrowed) as an archive with an OCI layout. names ends with NULL. */
CLOCHE_API int cloche_image_save(const char *const *names, int fd, cloche_err *err);

struct cloche_image_freed {
	unsigned images, layers, busy; /* busy: layers in use by a sandbox, which stay */
	uint64_t bytes;
};

/* Remove a name, or, given an id, the image with all its names, and everything that no image needs
 * afterwards. */
CLOCHE_API int cloche_image_remove(
	const char *name, struct cloche_image_freed *ret, cloche_err *err);
/* Remove the images without a name (all: every image), and everything that no image needs. */
CLOCHE_API int cloche_image_prune(bool all, struct cloche_image_freed *ret, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
