/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Signatures of AWS: the room's, and ours. */

#include "base/err.h"
#include "base/str.h"
#include <stddef.h>

struct broker;
struct stream;

/* After the last secret. */
_warn_unused_ int aws_setup(struct broker *b, struct cloche_err *err);
void aws_teardown(struct broker *b);
/* Verifies what the room signed, and takes foreign credentials out. 0, or -1: it was refused.
 * *ret_whole: how much of the body has to be known first; 0: nothing. */
_warn_unused_ int aws_open(struct stream *s, size_t *ret_whole);
/* The body is known as a whole; before anything changes it. 0, or -1: refused. */
_warn_unused_ int aws_whole(struct stream *s);
/* Signs; nothing of the head, or of a body that was collected, changes later. 0, or -1: refused. */
_warn_unused_ int aws_finish(struct stream *s);
void aws_stream_free(struct stream *s);
/* For the log; STR_NULL where it was not signed. */
struct str aws_region(const struct stream *s);
