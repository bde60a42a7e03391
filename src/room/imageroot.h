/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A root of many layers: those of an image in the image store (docs/design/images.md). `base` is as
 * in layers.h; the store's layers are mounted at its lower/. */

#include "base/err.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>

/* Locks on the layers that a room uses, so that they are not removed meanwhile. */
struct imageroot {
	int *locks; /* heap */
	size_t n;
};
#define IMAGEROOT_NULL ((struct imageroot){0})

/* Lock the layers. dir: the store's directory of layers. E_NOT_FOUND if a layer does not exist. */
_warn_unused_ int imageroot_lock(
	const char *dir, char *const *layers, struct imageroot *ret, struct cloche_err *err);
void imageroot_unlock(struct imageroot *r);

enum { IMAGEROOT_NAME = SHA256_HEX_MAX + 6 };
/* Make a name for these layers: one word, which is not a path. */
void imageroot_name(char *const *layers, char ret[IMAGEROOT_NAME]);

/* Make an overlay over the layers and the places of mounts: with base's upper/, or read-only, which
 * shows the layers without the room's changes. Return the detached mount. */
_warn_unused_ int imageroot_overlay(
	int base, char *const *layers, bool upper, struct cloche_err *err);
