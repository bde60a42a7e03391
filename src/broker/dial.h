/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From a host and port to a connection. */

#include "base/err.h"
#include <stdbool.h>

struct allow_rule;
struct broker;
struct stream;

/* Resolves, judges addresses, connects; then upstream_new, or refuse_upstream. */
void dial_start(struct stream *s);
void dial_cancel(struct stream *s);
/* Whether the connection of s, if it has one, leads to an address that the rule allows. */
bool dial_may_stay(const struct stream *s, const struct allow_rule *rule);
_warn_unused_ int dial_setup(struct broker *b, struct cloche_err *err);
void dial_teardown(struct broker *b);
