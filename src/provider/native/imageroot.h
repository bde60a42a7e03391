/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A root of many layers: those of an image in its store (docs/design/images.md). `base` is as in
 * layers.h, and the store's layers are mounted at its lower/. */

#include "base/err.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>

/* The layers that a room uses, which nobody removes meanwhile. */
struct imageroot {
	int *locks; /* heap */
	size_t n;
};
#define IMAGEROOT_NULL ((struct imageroot){0})

/* dir: the store's directory of layers. E_NOT_FOUND if one is not there. */
_warn_unused_ int imageroot_lock(
	const char *dir, char *const *layers, struct imageroot *ret, struct cloche_err *err);
void imageroot_unlock(struct imageroot *r);

enum { IMAGEROOT_NAME = SHA256_HEX_MAX + 6 };
/* Names these layers in one word, which is no path. */
void imageroot_name(char *const *layers, char ret[IMAGEROOT_NAME]);

/* A copy of the mount of the layers, read-only. The store is ours: it is not judged as what a
 * person shows. */
_warn_unused_ int imageroot_open(const char *dir, int *ret_tree, struct cloche_err *err);

/* An overlay over the layers and the places of mounts; with base's upper/, or read-only
 * as the layers look below the room's changes. Returns
 * the detached mount. */
_warn_unused_ int imageroot_overlay(
	int base, char *const *layers, bool upper, struct cloche_err *err);
