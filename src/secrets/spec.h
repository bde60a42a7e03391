/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks of specs that the files of this folder share. */

#include "secrets/secret_set.h"

#define SPEC_HEADER_MAX 128

bool spec_name_is_valid(struct str name);
/* A lower-case header name or pattern that is not the name of a framing header. */
bool spec_header_is_valid(struct str pattern);
bool spec_header_is_framing(struct str name);
