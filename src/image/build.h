/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The interface to the engine for storing a built image. */

#include "base/err.h"
#include "base/sha256.h"
#include <cloche/image_build.h>

/* Get its id in the engine. After cloche_image_build_ensure(). */
_warn_unused_ int build_id(cloche_image_build *b, char ret[SHA256_HEX_MAX], struct cloche_err *err);
/* Call fn with the path of an archive of the image, which exists only during the call. */
_warn_unused_ int build_archive(cloche_image_build *b,
	int (*fn)(const char *path, void *user, struct cloche_err *err), void *user,
	struct cloche_err *err);
