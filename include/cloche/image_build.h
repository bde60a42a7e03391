/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_IMAGE_BUILD_H
#define CLOCHE_IMAGE_BUILD_H
/* Images of two layers, built by an installed engine (podman, buildah, docker): the user's
 * Dockerfile, and on top of it what cloche adds. Images are named by their contents, so an existing
 * one is not built again. The engine runs what the Dockerfile says, with the engine's own network
 * and isolation for builds. A handle may be used by one thread at a time. Several handles and
 * processes may build at once; if they want the same image, one builds it and the others wait. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the two layers are one of these, a colon, and 64 hexadecimal digits. */
#define CLOCHE_IMAGE_REPO "cloche-repo"
#define CLOCHE_IMAGE_OVERLAY "cloche"
#define CLOCHE_IMAGE_MAX_AGE_S ((uint64_t)24 * 60 * 60)

typedef struct cloche_image_build cloche_image_build;

/* Called for each line that the engine prints, without the newline. */
typedef void (*cloche_image_line_fn)(const char *line, void *user);

/* What is built, and how. CLOCHE_IMAGE_BUILD_INIT has the defaults. */
typedef struct cloche_image_build_options {
	size_t size; /* of this struct; error.h */
	const void *dockerfile;
	size_t dockerfile_length; /* at most 1 MiB */
	/* podman, buildah, docker, or another program that takes docker's arguments, by name or
	 * path. NULL: the first of these three that is installed. */
	const char *engine;
	/* The age in seconds after which an existing image is built again from scratch, with its
	 * base images pulled again; 0: always. */
	uint64_t max_age_s;
	/* "uv": at each start, "uv sync" installs the packages of /workspace/pyproject.toml, if
	 * that exists. This runs code that the project chooses. NULL, "none": nothing is installed.
	 */
	const char *sync;
	cloche_image_line_fn line; /* may be NULL */
	void *user;
	/* Called with a sentence for what COPY would not find, as links of a directory; may be
	 * NULL. */
	cloche_image_line_fn warning;
} cloche_image_build_options;

#define CLOCHE_IMAGE_BUILD_INIT                                                                    \
	{                                                                                          \
		sizeof(cloche_image_build_options), NULL, 0, NULL, CLOCHE_IMAGE_MAX_AGE_S, NULL,   \
			NULL, NULL, NULL                                                           \
	}

/* Make a handle, which the caller frees. Everything in options is copied. CLOCHE_E_USAGE: an option
 * is wrong. */
CLOCHE_API int cloche_image_build_new(
	const cloche_image_build_options *options, cloche_image_build **ret, cloche_err *err);
CLOCHE_API void cloche_image_build_free(cloche_image_build *build);

/* Add a file for COPY and ADD to find; a later file of the same name replaces it. name is relative,
 * without ".." and backslashes ("src/a.c"). Everything is copied; at most 64 MiB in all, and 10,000
 * files. */
CLOCHE_API int cloche_image_build_add_file(cloche_image_build *build, const char *name,
	const void *data, size_t length, bool executable, cloche_err *err);
/* Add all regular files below a directory. Links and other types are left out, and so is everything
 * in a .git, and what the directory's .dockerignore names (CLOCHE_E_CONFIG: a line is no pattern).
 * skip names one file, relative to directory, to leave out; NULL: none. */
CLOCHE_API int cloche_image_build_add_directory(
	cloche_image_build *build, const char *directory, const char *skip, cloche_err *err);

/* Return the digest of the first layer: the SHA-256 of the Dockerfile followed by the name and
 * contents of each file, sorted by name (with "+x" after an executable file). Borrowed until the
 * handle is changed or freed; NULL if out of memory. */
CLOCHE_API const char *cloche_image_build_hash(cloche_image_build *build);
/* Return the name that cloche_image_build_ensure() gives, with the same rules. */
CLOCHE_API const char *cloche_image_build_tag(cloche_image_build *build);

/* Build the image if it does not exist, and return its name ("cloche:HEX", borrowed until the
 * handle is freed). CLOCHE_E_NOT_FOUND: no engine. CLOCHE_E_USAGE: no Dockerfile.
 * CLOCHE_E_CANCELLED: stopped. CLOCHE_E_IMAGE: the engine failed; err has the end of its output.
 * Blocks while the engine works; in a job (cloche/job.h) it gives way, and when the job is
 * cancelled the engine is ended first. */
CLOCHE_API int cloche_image_build_ensure(
	cloche_image_build *build, const char **ret_tag, cloche_err *err);
/* Store the image as a root for sandboxes (cloche/image.h) under the same name, unless it is stored
 * already. Call it after cloche_image_build_ensure(). loading may be NULL. */
CLOCHE_API int cloche_image_build_store(
	cloche_image_build *build, struct cloche_image_loading *loading, cloche_err *err);
/* Abort the engine that cloche_image_build_ensure() started. May be called from any thread or a
 * signal handler. */
CLOCHE_API void cloche_image_build_stop(cloche_image_build *build);

#ifdef __cplusplus
}
#endif
#endif
