/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters of request bodies. */

#include "base/macro.h"
#include <stdbool.h>
#include <stddef.h>

struct netlog_event;
struct stream;

/* Chooses the filters that judge s. Returns how much of its body they have to know in *ret_max, 0:
 * nothing; false where s was refused. */
_warn_unused_ bool filters_choose(struct stream *s, size_t *ret_max);
/* Runs them, once its body is known. False where s was refused. */
_warn_unused_ bool filters_apply(struct stream *s);
/* Refuses s, which has chosen some: its body is longer than they read. */
void filters_refuse_large(struct stream *s);
/* What they said, for the log. */
void filters_tag(const struct stream *s, struct netlog_event *ev);
void filters_forget(struct stream *s);
