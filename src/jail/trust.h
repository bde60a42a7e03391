/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where programs look for certificate authorities. */

#include <stdbool.h>
#include <stddef.h>

/* In the room: one file with the gateway's authority alone, and one that joins it to the roots that
 * the room's root filesystem had; the latter also as the only file of a directory, and as a trust
 * store for Java. Then what tells browsers, which have stores of their own, by their policies. */
#define TRUST_DIR "/run/cloche"
#define TRUST_CA_PATH TRUST_DIR "/ca.crt"
#define TRUST_BUNDLE_PATH TRUST_DIR "/ca-bundle.crt"
#define TRUST_CERTS_PATH TRUST_DIR "/certs"
#define TRUST_STORE_PATH TRUST_DIR "/cacerts"
#define TRUST_CHROMIUM_PATH TRUST_DIR "/chromium-policy.json"
#define TRUST_FIREFOX_PATH TRUST_DIR "/firefox-policies.json"

struct trust_env {
	const char *name, *value;
	bool joined; /* options: what the caller has set follows behind a space, and so wins */
};

/* The environment variables that make runtimes trust the gateway; *ret_n of them, static. */
const struct trust_env *trust_env_table(size_t *ret_n);
