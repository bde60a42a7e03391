/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "image/store.h"

/* Writes these images as an archive with an OCI layout to out (borrowed): its blobs as they came.
 */
_warn_unused_ int image_save(
	struct image_store *s, const struct image_index *images, int out, struct cloche_err *err);
