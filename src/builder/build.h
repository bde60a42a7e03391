/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What whoever stores a built image needs of the engine that has it. */

#include "base/err.h"
#include "base/sha256.h"
#include <cloche/image_build.h>

/* After cloche_image_build_ensure(). Its id with the engine. */
_warn_unused_ int build_id(cloche_image_build *b, char ret[SHA256_HEX_MAX], struct cloche_err *err);
/* Calls fn with the path of an archive of it, which goes with the call. */
_warn_unused_ int build_archive(cloche_image_build *b,
	int (*fn)(const char *path, void *user, struct cloche_err *err), void *user,
	struct cloche_err *err);
