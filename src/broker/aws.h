/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that verifies the room's AWS signatures and signs with the real credentials. */

#include "base/err.h"

struct broker;

/* Call this after the last secret was added. */
_warn_unused_ int aws_setup(struct broker *b, struct cloche_err *err);
void aws_teardown(struct broker *b);
