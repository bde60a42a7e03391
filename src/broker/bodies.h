/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that runs the filters of request bodies (filter/filter.h). */

#include "broker/chain.h"

extern const struct filter filter_bodies;
