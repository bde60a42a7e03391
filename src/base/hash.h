/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Include this instead of <uthash.h>: the maps are then keyed with SipHash-2-4 under a key drawn
 * once per process, so that a room cannot choose names that collide. */

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 (Aumasson, Bernstein 2012) of n bytes under the process's key. Any thread. */
uint64_t hash_keyed(const void *p, size_t n);

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = (unsigned)hash_keyed((keyptr), (keylen)))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
