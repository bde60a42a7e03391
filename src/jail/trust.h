/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where programs look for certificate authorities. */

#include <stdbool.h>
#include <stddef.h>

/* The files in the room: one with the gateway's CA certificate alone, and one that joins it to the
 * roots of the room's root filesystem; the latter also as the only file of a directory, and as a
 * trust store for Java. The last two are policies for browsers, which have trust stores of their
 * own. */
#define TRUST_DIR "/run/cloche"
#define TRUST_CA_PATH TRUST_DIR "/ca.crt"
#define TRUST_BUNDLE_PATH TRUST_DIR "/ca-bundle.crt"
#define TRUST_CERTS_PATH TRUST_DIR "/certs"
#define TRUST_STORE_PATH TRUST_DIR "/cacerts"
#define TRUST_CHROMIUM_PATH TRUST_DIR "/chromium-policy.json"
#define TRUST_FIREFOX_PATH TRUST_DIR "/firefox-policies.json"

struct trust_env {
	const char *name, *value;
	bool joined; /* options: the caller's own value follows after a space, and so wins */
};

/* Return the environment variables that make runtimes trust the gateway: *ret_n of them, static. */
const struct trust_env *trust_env_table(size_t *ret_n);
