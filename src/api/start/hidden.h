/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Says once for each project which files its rooms do not get. */

#include "client/client.h"
#include <cloche/sandbox.h>

/* Have fn (may be NULL) told of the hidden files of this room when it has started, unless it was
 * told the same before. */
_warn_unused_ int hidden_tell(struct client *client, const struct room_spec *room,
	cloche_warning_fn fn, void *user, struct cloche_err *err);
