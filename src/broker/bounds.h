/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What bodies may take up, of all streams together. */

#include <stdbool.h>
#include <stddef.h>

struct stream;

/* After window_out has changed, or s is closed. */
void bounds_answer(struct stream *s);
/* Bytes of the answer that may go to the gateway now, as far as its windows are concerned. */
size_t bounds_answer_room(const struct stream *s);
/* After `body` has changed, or s is closed; false: more waits than may. */
bool bounds_request(struct stream *s);
