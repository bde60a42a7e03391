/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Get images with the programs that the user has for that. */

#include "image/load.h"

_warn_unused_ int image_pull(
	struct image_store *s, const char *name, struct image_load *job, struct cloche_err *err);
