/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that takes content codings off answers that are looked into. */

#include "broker/chain.h"

extern const struct filter filter_codings;
