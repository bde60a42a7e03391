/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that keeps requests with a GitHub App's token within that token's repositories, and
 * the tokens themselves. */

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>

struct broker;
struct github_app;
struct masked_secret;
struct stream;

/* Add a credential whose secret is number `member` of the set. Takes app on success. Return 0 or
 * -ENOMEM. */
_warn_unused_ int github_add(struct broker *b, struct github_app *app, size_t member);
void github_free(struct broker *b);
/* The policy was replaced. */
void github_judge_again(struct broker *b);
/* Forget tokens that are about to expire. */
void github_expire(struct broker *b);
/* Called by the secrets filter before it puts live secrets into s. `unknown` is one whose value is
 * not known yet, `live` one whose value is known; both may be NULL. several: there are more live
 * ones. Return 0; 1 if s waits for what is missing and goes on with request_prepare(), or was
 * refused; -ENOMEM. */
_warn_unused_ int github_take(struct stream *s, const struct masked_secret *unknown,
	const struct masked_secret *live, bool several);
