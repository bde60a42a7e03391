/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Logins whose access token is renewed: tokens for requests that wait for one, and what came of
 * renewing, written back. The filter sees who is told that a token is not valid. */

#include "base/macro.h"
#include "ipc/chan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct login;
struct masked_secret;
struct stream;

/* Let the secret that is number `member` of the set be renewed. number: of the supervisor's login.
 * expires_msec: of its value; 0: not known. Takes login on success. Return 0 or -ENOMEM. */
_warn_unused_ int renew_add(struct broker *b, struct login *login, size_t member, unsigned number,
	uint64_t expires_msec);
void renew_free(struct broker *b);
/* The policy was replaced. */
void renew_judge_again(struct broker *b);
/* Forget tokens that are about to expire. */
void renew_expire(struct broker *b);
/* Called by the secrets filter before it puts secrets into s. `unknown` is one whose value is not
 * known, `put` a renewable one whose value is; both may be NULL. Return 0; 1 if s waits for a token
 * and goes on with request_prepare(), or was refused; -ENOMEM. */
_warn_unused_ int renew_take(
	struct stream *s, const struct masked_secret *unknown, const struct masked_secret *put);
/* The supervisor's answers. Return false if they are malformed. */
_warn_unused_ bool renew_on_login(struct broker *b, struct chan_frame *f);
_warn_unused_ bool renew_on_written(struct broker *b, struct str payload);
/* Return whether the broker has to stay after its gateway, since a new token may be under way. It
 * ends then when that is over. */
_warn_unused_ bool renew_holds(struct broker *b);
