/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "image/store.h"

/* Write these images to out (borrowed) as an archive with an OCI layout. Blobs are not changed. */
_warn_unused_ int image_save(
	struct image_store *s, const struct image_index *images, int out, struct cloche_err *err);
