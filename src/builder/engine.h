/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The engines' own programs, as a person would call them: with all of the caller's environment. */

#include "base/err.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stdint.h>

struct engine {
	char *path;      /* heap */
	bool is_buildah; /* else it takes docker's arguments */
	int stop_fd;     /* borrowed: what runs is ended when it becomes readable; -1: never */
	void (*on_line)(const char *line, void *user); /* NULL: nobody is told */
	void *user;
};
void engine_done(struct engine *e);

/* wanted: a name or path; NULL: podman, buildah or docker. E_NOT_FOUND with the next step. */
_warn_unused_ int engine_find(const char *wanted, struct engine *ret, struct cloche_err *err);

/* When the image of that name was made: 1 and seconds since 1970; 0 if there is none, or it does
 * not say. */
_warn_unused_ int engine_created(
	struct engine *e, const char *tag, int64_t *ret, struct cloche_err *err);

/* The image's id: 64 hexadecimal digits. E_IMAGE. */
_warn_unused_ int engine_id(
	struct engine *e, const char *tag, char ret[SHA256_HEX_MAX], struct cloche_err *err);

/* Writes an archive of the image to a file that is not there yet. E_IMAGE. */
_warn_unused_ int engine_save(
	struct engine *e, const char *tag, const char *path, struct cloche_err *err);

/* Builds it. fresh: from the beginning, with base images that are new. local: the base image is
 * only here, and not asked for elsewhere. E_IMAGE with the engine's last words. */
struct engine_build {
	const char *tag, *dockerfile, *context; /* names and paths */
	bool fresh, local;
};
_warn_unused_ int engine_build(
	struct engine *e, const struct engine_build *what, struct cloche_err *err);
