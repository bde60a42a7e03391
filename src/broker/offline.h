/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A network that is answered from a recording alone: no name is resolved, no connection is made. */

#include "base/err.h"

#include <stdbool.h>

struct broker;
struct offline;
struct stream;

/* Takes fd and reads what is in it; b->offline is set then. */
_warn_unused_ int offline_start(struct broker *b, int fd, struct cloche_err *err);
struct offline *offline_free(struct offline *o);

/* In place of policy and of what comes behind it: s goes on, or is refused. */
void offline_decide(struct stream *s);
/* Whether the answer does not wait for the request's body: nobody is to ask for it. */
bool offline_is_early(const struct stream *s);
/* In place of an origin: the answer is found and sent. */
void offline_go(struct stream *s);
