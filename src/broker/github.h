/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that keeps requests with tokens of GitHub Apps to what these are for; and the tokens.
 */

#include "broker/chain.h"

struct broker;
struct github_app;
struct masked_secret;

extern const struct filter filter_github;

/* Takes a credential whose secret is member `member` of the set. */
_warn_unused_ int github_add(struct broker *b, struct github_app *app, size_t member);
void github_free(struct broker *b);
/* Tokens that are about to expire are forgotten. */
void github_expire(struct broker *b);
/* For the filter of secrets, before it puts live ones into s: one whose value is not known yet, and
 * one whose value is (NULL: there is none; several: of more). 1: s waits for what is missing, and
 * goes on with request_prepare(), or was refused. 0; -ENOMEM. */
_warn_unused_ int github_take(struct stream *s, const struct masked_secret *unknown,
	const struct masked_secret *live, bool several);
