/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_IMAGE_BUILD_H
#define CLOCHE_IMAGE_BUILD_H
/* Images of two layers, built by an engine that is installed (podman, buildah, docker): the user's
 * Dockerfile, and on top of it what cloche adds. They are named by their contents, so what is there
 * is not built again. What a Dockerfile says is run by the engine, with the network and the walls
 * that it gives to a build. One thread at a time for a handle; several handles, and processes, may
 * build at once: who wants the same image waits for the one who builds it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the two layers: these, a colon, and 64 hexadecimal digits. */
#define CLOCHE_IMAGE_REPO "cloche-repo"
#define CLOCHE_IMAGE_OVERLAY "cloche"
#define CLOCHE_IMAGE_MAX_AGE_S ((uint64_t)24 * 60 * 60)

typedef struct cloche_image_build cloche_image_build;

/* NULL on lack of memory. dockerfile is copied: at most 1 MiB. */
CLOCHE_API cloche_image_build *cloche_image_build_new(void);
CLOCHE_API void cloche_image_build_free(cloche_image_build *build);
CLOCHE_API int cloche_image_build_set_dockerfile(
	cloche_image_build *build, const void *dockerfile, size_t length, cloche_err *err);

/* A file that COPY and ADD find; a later one of the same name replaces it. name is relative,
 * without ".." and backslashes ("src/a.c"). Copied; at most 64 MiB together, and 10,000 files. */
CLOCHE_API int cloche_image_build_add_file(cloche_image_build *build, const char *name,
	const void *data, size_t length, bool executable, cloche_err *err);
/* All regular files below a directory, as such files; links and others are left out, and what is
 * in a .git. skip: one that is not taken, by its name there; NULL: none. */
CLOCHE_API int cloche_image_build_add_directory(
	cloche_image_build *build, const char *directory, const char *skip, cloche_err *err);

/* podman, buildah or docker, or another program that takes docker's arguments, by name or path.
 * Default: the first of these three that is there. Copied. */
CLOCHE_API int cloche_image_build_set_engine(
	cloche_image_build *build, const char *engine, cloche_err *err);

/* Seconds after which an image that is there is built anew from the beginning, with its base images
 * pulled again (default CLOCHE_IMAGE_MAX_AGE_S); 0: always. */
CLOCHE_API void cloche_image_build_set_max_age(cloche_image_build *build, uint64_t seconds);

/* "uv": at each start "uv sync" brings the packages of /workspace/pyproject.toml, if there is
 * one. That runs what the project says. "none" is the default. */
CLOCHE_API int cloche_image_build_set_sync(
	cloche_image_build *build, const char *sync, cloche_err *err);

/* Told of each line that the engine prints, without its end. */
typedef void (*cloche_image_line_fn)(const char *line, void *user);
CLOCHE_API void cloche_image_build_on_line(
	cloche_image_build *build, cloche_image_line_fn fn, void *user);

/* The digest of the first layer: SHA-256 of the Dockerfile, and of each file's name and contents in
 * the order of the names, one behind the other ("+x" behind those of an executable one). Borrowed
 * until the handle is changed or freed; NULL on lack of memory. */
CLOCHE_API const char *cloche_image_build_hash(cloche_image_build *build);
/* The name that cloche_image_build_ensure() gives. The same holds for it. */
CLOCHE_API const char *cloche_image_build_tag(cloche_image_build *build);

/* Sees to it that the image is there, and gives its name ("cloche:HEX", borrowed until the handle
 * is freed). CLOCHE_E_NOT_FOUND: no engine; CLOCHE_E_USAGE: no Dockerfile; CLOCHE_E_CANCELLED:
 * stopped; CLOCHE_E_IMAGE: the engine failed, with its last words. Blocks while the engine works.
 */
CLOCHE_API int cloche_image_build_ensure(
	cloche_image_build *build, const char **ret_tag, cloche_err *err);
/* Sees to it that the image is among those that are kept for the roots of sandboxes
 * (cloche/image.h), by the same name. After cloche_image_build_ensure(); loading may be NULL. */
CLOCHE_API int cloche_image_build_store(
	cloche_image_build *build, struct cloche_image_loading *loading, cloche_err *err);
/* Ends what cloche_image_build_ensure() has started. From any thread, or a signal handler. */
CLOCHE_API void cloche_image_build_stop(cloche_image_build *build);

#ifdef __cplusplus
}
#endif
#endif
