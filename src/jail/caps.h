/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Capabilities, no_new_privs and resource limits. */

#include "base/err.h"
#include <stdint.h>

/* CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID: what root inside keeps, within the room's user
 * namespace only. */
#define CAPS_ROOM ((1ULL << 0) | (1ULL << 1) | (1ULL << 3) | (1ULL << 6) | (1ULL << 7))

/* SETFCAP: whoever lacks it may not make a user namespace in which he is root. */
#define CAPS_ROOM_NESTED (CAPS_ROOM | 1ULL << 31)

/* Narrows the bounding set to `keep` and empties the ambient set, for good; needs SETPCAP. */
_warn_unused_ int caps_bound(uint64_t keep, struct cloche_err *err);

/* Narrows the permitted and effective sets to `keep` and empties the inheritable set. */
_warn_unused_ int caps_set(uint64_t keep, struct cloche_err *err);

/* Gives up every capability of this thread, for good: effective, permitted, inheritable, ambient,
 * and bounding if that is still allowed. Descriptors that are open stay usable. */
_warn_unused_ int caps_drop(struct cloche_err *err);

/* Leaves the session keyring that was inherited, with all keys of the person's in it, for a new and
 * empty one. A kernel without keyrings is no error, nor are more than a user may have: then no
 * keyring call is possible inside all the same. */
_warn_unused_ int caps_join_keyring(struct cloche_err *err);

/* No program that is executed from now on gains privileges. */
_warn_unused_ int caps_no_new_privs(struct cloche_err *err);

/* Sets soft and hard limit of a resource; if the hard limit of the caller is lower already, that
 * one is kept. */
_warn_unused_ int caps_rlimit(int resource, uint64_t value, struct cloche_err *err);
