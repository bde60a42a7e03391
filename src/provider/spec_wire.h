/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A room's specification as part of a message. */

#include "ipc/wire.h"
#include "provider/spec.h"

/* Append the whole spec. */
void room_spec_put(struct wire_out *w, const struct room_spec *s);

/* Read a spec. ret is always initialised: free it with room_spec_done. Return false if it is
 * malformed. room_spec_check checks what the values mean. */
bool room_spec_get(struct wire_in *r, struct room_spec *ret);
