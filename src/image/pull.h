/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Gets images by the programs that a person has for it. */

#include "image/load.h"

_warn_unused_ int image_pull(
	struct image_store *s, const char *name, struct image_load *job, struct cloche_err *err);
