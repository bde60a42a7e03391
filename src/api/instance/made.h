/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration that a long-lived sandbox was made with, kept in its directory while it
 * runs. */

#include "api/instance/instance.h"
#include "sandbox/store.h"

/* secrets: names of masked secrets that sb itself does not have (sandbox_store()); may be NULL. */
_warn_unused_ int made_write(const cloche_instance *instance, const cloche_sandbox *sb,
	char *const *secrets, struct cloche_err *err);
/* *ret_secrets (strv_free): the names of masked secrets, which are not stored themselves.
 * E_UNSUPPORTED if nothing is stored: another version made the sandbox. */
_warn_unused_ int made_read(const cloche_instance *instance, cloche_sandbox **ret,
	char ***ret_secrets, struct cloche_err *err);
/* Replace the stored allowlist, or add to it. */
_warn_unused_ int made_set_allowlist(const cloche_instance *instance, const cloche_allowlist *list,
	bool keep, struct cloche_err *err);

/* --- instance_life.c --- */

/* Like cloche_instance_create(), but the sandbox is incomplete: it ends with the client, and
 * nothing of it stays. */
_warn_unused_ int instance_begin(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	struct client **ret_client, cloche_instance **ret, struct cloche_err *err);
/* r is the result of what had to be done to complete it. If that is 0, keep the sandbox from now
 * on; otherwise, or if it has ended, remove it with its log. Free the client. Return r, or why it
 * could not be kept. */
_warn_unused_ int instance_complete(struct client *client, int r, struct cloche_err *err);
