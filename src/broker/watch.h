/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ask a person about requests that the policy refuses. */

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct watch_held;
struct watcher;
struct broker;
struct stream;

/* Who is asked, and what waits for an answer. */
struct watching {
	struct watcher *watchers;
	struct watch_held *held;
	uint32_t last; /* number of a question */
	bool expected; /* what is held waits for somebody who watches, too */
};

/* Ask whoever watches from now on over this socket, which a client has sent. Takes fd. */
void watch_begin(struct broker *b, int fd);
/* Hold a refused request, of the process in b->lines.owner, if somebody is asked and an allowlist
 * could allow it. Return false if it has to be refused now. */
_warn_unused_ bool watch_hold(struct stream *s);
/* Return whether the policy in force has a denial for its host, which nobody is asked about. */
bool watch_is_denied(const struct stream *s);
/* A request is held no longer. */
void watch_forget(struct stream *s);
/* The policy was replaced: let go on what it allows now, refuse what it denies. */
void watch_judge_again(struct broker *b);
void watch_free(struct broker *b);
