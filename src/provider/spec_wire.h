/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A room's specification as part of a message. */

#include "ipc/wire.h"
#include "provider/spec.h"

/* Appends the whole spec. */
void room_spec_put(struct wire_out *w, const struct room_spec *s);

/* Reads one; ret is initialised in any case: free it with room_spec_done. False if malformed.
 * What the values mean is checked by room_spec_check. */
bool room_spec_get(struct wire_in *r, struct room_spec *ret);
