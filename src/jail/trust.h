/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where programs look for certificate authorities. */

#include <stddef.h>

/* In the room: one file with the gateway's authority alone, and one that joins it to the roots that
 * the room's root filesystem had. */
#define TRUST_DIR "/run/cloche"
#define TRUST_CA_PATH TRUST_DIR "/ca.crt"
#define TRUST_BUNDLE_PATH TRUST_DIR "/ca-bundle.crt"

struct trust_env {
	const char *name, *value;
};

/* The environment variables that make runtimes trust the gateway; *ret_n of them, static. */
const struct trust_env *trust_env_table(size_t *ret_n);

/* The usual paths of bundles, over which the joined one is mounted where they exist; NULL ends. */
const char *const *trust_bundle_paths(void);
