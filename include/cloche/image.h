/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_IMAGE_H
#define CLOCHE_IMAGE_H
/* Images that are kept for the roots of sandboxes ("image:NAME", cloche_sandbox_set_root()), in the
 * state directory of who calls: taken from archives, registries and container engines, checked by
 * their digests, each layer unpacked once. Everything blocks; different threads may call at the
 * same time, as several programs may. A name of an image is name[:tag][@sha256:DIGEST], its digest,
 * or the beginning of its id. */

#include <cloche/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_image cloche_image;

/* Takes one image, borrowed for the call; false ends the list. */
typedef bool (*cloche_image_fn)(const cloche_image *image, void *user);
/* What is done at the moment, and of how many bytes it is done; on the calling thread. false gives
 * it up: CLOCHE_E_CANCELLED, and nothing is left of it. */
typedef bool (*cloche_image_step_fn)(const char *step, uint64_t bytes, void *user);

/* Calls fn with each image that is stored, in the order of their names. */
CLOCHE_API int cloche_image_list(cloche_image_fn fn, void *user, cloche_err *err);

/* Finds one. *ret is the caller's to free. CLOCHE_E_NOT_FOUND. */
CLOCHE_API int cloche_image_find(const char *name, cloche_image **ret, cloche_err *err);
/* NULL is fine. */
CLOCHE_API void cloche_image_free(cloche_image *image);

/* All are borrowed from the image. The id is 64 digits, of its configuration, as engines have it.
 */
CLOCHE_API const char *cloche_image_id(const cloche_image *image);
/* The i-th name ("name:tag"); NULL behind the last. */
CLOCHE_API const char *cloche_image_name(const cloche_image *image, size_t i);
/* When it was built, as its maker says (RFC 3339), or "". */
CLOCHE_API const char *cloche_image_created(const cloche_image *image);
/* Of its layers, as they came (maybe compressed). */
CLOCHE_API uint64_t cloche_image_size(const cloche_image *image);
CLOCHE_API size_t cloche_image_layers(const cloche_image *image);
/* Everything that is known as a JSON object. */
CLOCHE_API const char *cloche_image_json(const cloche_image *image);

struct cloche_image_loading {
	const char *name;          /* instead of the name that it comes with; NULL: that one */
	cloche_image_step_fn step; /* may be NULL */
	cloche_image_fn stored;    /* called for each image at the end; may be NULL */
	void *user;
	/* Filled: files whose owner could only be written down, and devices that were left out. */
	uint64_t owners_noted, devices_left_out;
};

/* Loads an OCI layout (a directory, or an archive) or what `docker save` and `podman save` write.
 * source: a path; NULL: an archive from the descriptor fd (borrowed), read to its end. All of its
 * images are stored, or none. */
CLOCHE_API int cloche_image_load(
	const char *source, int fd, struct cloche_image_loading *loading, cloche_err *err);

/* Gets one by its name: from its registry by skopeo if that is installed, else from what podman or
 * docker have here. */
CLOCHE_API int cloche_image_pull(
	const char *name, struct cloche_image_loading *loading, cloche_err *err);

/* Writes images as an archive with an OCI layout to fd (borrowed); names ends with NULL. */
CLOCHE_API int cloche_image_save(const char *const *names, int fd, cloche_err *err);

struct cloche_image_freed {
	unsigned images, layers, busy; /* busy: layers that a sandbox uses, which stay */
	uint64_t bytes;
};

/* Takes a name away, or by an id the image with all its names, and what no image needs then. */
CLOCHE_API int cloche_image_remove(
	const char *name, struct cloche_image_freed *ret, cloche_err *err);
/* Removes the images without a name (all: every one), and whatever no image needs. */
CLOCHE_API int cloche_image_prune(bool all, struct cloche_image_freed *ret, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
