/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers in place of an origin. */

#include "base/str.h"

struct policy_request;
struct stream;

void refuse_policy(struct stream *s, const struct policy_request *req);
/* 403: the content of the request is not allowed. detail may be any bytes. */
void refuse_body(struct stream *s, const char *error, const char *message, struct str detail);
/* 502 and the like, or RESET if the answer has begun. refuse_address() is a 403, with an address
 * that the user may allow, or NULL. Texts are printable. */
void refuse_upstream(struct stream *s, unsigned status, const char *error, const char *message);
/* 403: the recording that answers everything has no answer to this. */
void refuse_offline(struct stream *s, const char *message);
void refuse_address(struct stream *s, const char *message, const char *address);
