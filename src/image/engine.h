/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The engines' own programs, called as a user would, with all of the caller's environment. */

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stdint.h>

struct engine {
	char *path;      /* heap */
	bool is_buildah; /* else it takes docker's arguments */
	int stop_fd;     /* borrowed: stops the program when it becomes readable; -1: never */
	void (*on_line)(const char *line, void *user); /* NULL: none */
	void *user;
};
void engine_done(struct engine *e);

/* Find an engine. wanted: a name or path; NULL: podman, buildah or docker. E_NOT_FOUND with a
 * hint. */
_warn_unused_ int engine_find(const char *wanted, struct engine *ret, struct cloche_err *err);

/* Get the time when the image of that name was made, in seconds since 1970. Return 1, or 0 if there
 * is no such image or its time is not known. */
_warn_unused_ int engine_created(
	struct engine *e, const char *tag, int64_t *ret, struct cloche_err *err);

/* Get the image's id: 64 hexadecimal digits. E_IMAGE. */
_warn_unused_ int engine_id(
	struct engine *e, const char *tag, char ret[SHA256_HEX_MAX], struct cloche_err *err);

/* Get what the image runs, as lists of JSON: "[...]", or nothing. E_IMAGE. */
_warn_unused_ int engine_command(struct engine *e, const char *tag, struct buf *ret_entrypoint,
	struct buf *ret_cmd, struct cloche_err *err);

/* Write an archive of the image to a new file. E_IMAGE. */
_warn_unused_ int engine_save(
	struct engine *e, const char *tag, const char *path, struct cloche_err *err);

/* Build an image. fresh: from the beginning, with new base images. local: the base image exists
 * only locally, so do not pull it. E_IMAGE with the engine's last line. */
struct engine_build {
	const char *tag, *dockerfile, *context; /* names and paths */
	bool fresh, local;
};
_warn_unused_ int engine_build(
	struct engine *e, const struct engine_build *what, struct cloche_err *err);
