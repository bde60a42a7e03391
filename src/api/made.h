/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a long-lived sandbox was made with, kept in its directory as long as it runs. */

#include "api/instance.h"
#include "sandbox/store.h"

_warn_unused_ int made_write(
	const cloche_instance *instance, const cloche_sandbox *sb, struct cloche_err *err);
/* *ret_secrets (strv_free): the names of masked secrets, which are not in it. E_UNSUPPORTED if
 * there is nothing: another version made it. */
_warn_unused_ int made_read(const cloche_instance *instance, cloche_sandbox **ret,
	char ***ret_secrets, struct cloche_err *err);
/* list takes the place of what it said. */
_warn_unused_ int made_set_allowlist(
	const cloche_instance *instance, const cloche_allowlist *list, struct cloche_err *err);

/* --- instance_life.c --- */

/* As cloche_instance_create() up to where the room is there; the sandbox goes with the client until
 * client_complete(). */
_warn_unused_ int instance_begin(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	struct client **ret_client, cloche_instance **ret, struct cloche_err *err);
