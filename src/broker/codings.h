/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that removes the content codings of answers that are scrubbed. */

#include "broker/chain.h"

extern const struct filter filter_codings;
