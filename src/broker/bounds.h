/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What bodies may take up, of all streams together. */

#include <stdbool.h>
#include <stddef.h>

struct stream;

struct bounds {
	size_t under_way, waiting; /* of all streams */
	size_t collected;          /* bytes of bodies that are looked into as a whole */
	size_t held;               /* bytes of HTTP/2 answers that the gateway does not take yet */
	bool held_up;              /* a connection is not read until there are less */
	bool full;                 /* more than OUT_HIGH waited for the gateway */
	bool tight;                /* a stream waits until others are credited */
};

/* After window_out has changed, or s is closed. */
void bounds_answer(struct stream *s);
/* Bytes of the answer that may go to the gateway now, as far as its windows are concerned. */
size_t bounds_answer_room(const struct stream *s);
/* After `body` has changed, or s is closed; false: more waits than may. */
bool bounds_request(struct stream *s);
