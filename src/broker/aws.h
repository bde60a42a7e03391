/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that verifies what the room signed for AWS, and signs it with the real credentials. */

#include "broker/chain.h"

struct broker;

extern const struct filter filter_aws;

/* After the last secret. */
_warn_unused_ int aws_setup(struct broker *b, struct cloche_err *err);
void aws_teardown(struct broker *b);
