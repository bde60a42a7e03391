/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that puts the values of secrets into the headers of requests. */

#include "broker/chain.h"

extern const struct filter filter_secrets;
