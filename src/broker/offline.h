/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A network that is answered from a recording alone: no name is resolved, no connection is made. */

#include "base/err.h"

#include <stdbool.h>

struct broker;
struct offline;
struct stream;

/* Read the cassette from fd, which is taken, and set b->offline. */
_warn_unused_ int offline_start(struct broker *b, int fd, struct cloche_err *err);
struct offline *offline_free(struct offline *o);

/* Decide in place of policy and the filters: s goes on, or is refused. */
void offline_decide(struct stream *s);
/* Return whether the answer does not wait for the request's body, so that the client is not asked
 * for it. */
bool offline_is_early(const struct stream *s);
/* Find the answer and send it in place of an origin. */
void offline_go(struct stream *s);
