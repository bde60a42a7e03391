/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a driver says that its agent needs, added to a sandbox. What the caller has configured wins
 * over it. */

#include "agent/driver.h"
#include "sandbox/sandbox.h"
#include <string.h>

/* Set variables that the sandbox does not have yet. home: the agent's, inside. */
_warn_unused_ int agent_add_environment(cloche_sandbox *sb, const struct agent_environment *env,
	const char *home, struct cloche_err *err);
/* Allow hosts, except those that the allowlist has rules for already: narrow rules for a host stay
 * narrow. A host may have a port. */
_warn_unused_ int agent_add_hosts(
	cloche_sandbox *sb, const char *driver, char *const *hosts, struct cloche_err *err);

/* Return whether the sandbox has this credential, masked or not. */
bool agent_has_key(const cloche_sandbox *sb, const struct agent_key *key);
/* A credential of the caller's, as it was found; agent_found_done() wipes it. */
struct agent_found {
	char *value;           /* NULL: there is none */
	bool expired;          /* there is a login, which has expired and cannot be renewed */
	bool renews;           /* the value is the access token of a login that the broker renews */
	uint64_t expires_msec; /* of that; 0: not known */
	char *client_secret;   /* with which it is renewed, if it is not in the driver; or NULL */
	char *account;         /* whose login it is, for the driver's account_env; or NULL */
};
void agent_found_done(struct agent_found *found);
/* Find a credential of a driver: in the caller's environment, else in the file of a login. *ret
 * must be given to agent_found_done() in every case. Return 0 or -E_NO_MEMORY. */
_warn_unused_ int agent_key_find(const struct agent_driver *d, const struct agent_key *key,
	struct agent_found *ret, struct cloche_err *err);
/* Give the agent a credential as a masked secret for these hosts. */
_warn_unused_ int agent_mask_key(cloche_sandbox *sb, const struct agent_key *key,
	char *const *hosts, const struct agent_found *found, struct cloche_err *err);
/* Fail with E_USAGE if the sandbox sets a variable that must not be there beside the credential. */
_warn_unused_ int agent_check_withheld(const cloche_sandbox *sb, const struct agent_key *key,
	const char *driver, struct cloche_err *err);
