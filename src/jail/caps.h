/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Capabilities, no_new_privs and resource limits. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

/* The capabilities that root keeps in a room, within its user namespace only: CHOWN, DAC_OVERRIDE,
 * FOWNER, SETGID, SETUID. */
#define CAPS_ROOM ((1ULL << 0) | (1ULL << 1) | (1ULL << 3) | (1ULL << 6) | (1ULL << 7))

/* SETFCAP: without it, a process cannot make a user namespace in which it is root. */
#define CAPS_ROOM_NESTED (CAPS_ROOM | 1ULL << 31)

/* Needed in the namespace of the mounts that are copied. */
#define CAPS_SYS_ADMIN (1ULL << 21)

/* Return whether all of these are in the effective set. */
bool caps_have(uint64_t wanted);

/* Reduce the bounding set to `keep` and empty the ambient set, for good. Needs SETPCAP. */
_warn_unused_ int caps_bound(uint64_t keep, struct cloche_err *err);

/* Reduce the permitted and effective sets to `keep` and empty the inheritable set. */
_warn_unused_ int caps_set(uint64_t keep, struct cloche_err *err);

/* Give up every capability of this thread, for good: effective, permitted, inheritable, ambient,
 * and bounding if that is still allowed. Open descriptors stay usable. */
_warn_unused_ int caps_drop(struct cloche_err *err);

/* Replace the inherited session keyring, which holds the user's keys, with a new and empty one. It
 * is no error if the kernel has no keyrings or the user may not have more: no keyring call is
 * possible in the room anyway. */
_warn_unused_ int caps_join_keyring(struct cloche_err *err);

/* Prevent every program that is executed from now on from gaining privileges. */
_warn_unused_ int caps_no_new_privs(struct cloche_err *err);

/* Set the soft and hard limit of a resource. If the caller's hard limit is already lower, keep that
 * one. */
_warn_unused_ int caps_rlimit(int resource, uint64_t value, struct cloche_err *err);
