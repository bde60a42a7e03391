/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tokens of GitHub Apps. */

#include "base/macro.h"
#include <stdbool.h>
#include <stddef.h>

struct broker;
struct github_app;
struct masked_secret;
struct stream;

/* Takes a credential whose secret is member `member` of the set. */
_warn_unused_ int github_add(struct broker *b, struct github_app *app, size_t member);
void github_free(struct broker *b);
/* Tokens that are about to expire are forgotten. */
void github_expire(struct broker *b);
/* Whether s cannot go on yet with a live secret: its value is not known; or s is for GraphQL, and
 * what it may address is not. */
bool github_must_wait(const struct stream *s, const struct masked_secret *secret);
/* s waits for that, and goes on with request_prepare(). */
void github_wait(struct stream *s, const struct masked_secret *secret);
/* How much of a body has to be known before the request goes on; 0: nothing. */
size_t github_needs_body(const struct stream *s);
/* Whether what s, which has its credentials, addresses is within their reach; refuses it else. */
_warn_unused_ bool github_check(struct stream *s);
