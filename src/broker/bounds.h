/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits on what the bodies of all streams together may take up. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;

struct bounds {
	size_t under_way, waiting; /* uncredited answers; unsent request bodies */
	size_t collected;          /* bytes of bodies that are collected as a whole */
	size_t held;               /* bytes of HTTP/2 answers that the gateway does not take yet */
	size_t grown;              /* what windows of requests have grown by */
	size_t ahead;              /* what origins may send ahead beyond their first windows */
	bool held_up;              /* a connection is not read until `held` is smaller */
	bool full;                 /* more than OUT_HIGH waited for the gateway */
	bool tight;                /* a stream waits until others get credit */
};

/* Update the counts after window_out has changed or s was closed. */
void bounds_answer(struct stream *s);
/* Return how many bytes of the answer the windows let go to the gateway now. */
size_t bounds_answer_room(const struct stream *s);
/* Update the counts after `body` has changed or s was closed. Return false if more waits than is
 * allowed. */
bool bounds_request(struct stream *s);
/* The origin has taken a whole window of s. Return how many bytes the window grows by. */
uint32_t bounds_widen(struct stream *s);
/* The request is over, so its window is that of the beginning. */
void bounds_narrow(struct stream *s);
