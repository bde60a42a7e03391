/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a service that speaks E2B's protocol is, and the words that are part of addresses there. */

#include "asked/url.h"
#include "base/buf.h"
#include "base/err.h"

enum { PLACE_TEXT_MAX = URL_TEXT_MAX, PLACE_ID_MAX = 128 };

/* Borrows the text that it was read from. */
struct place {
	struct str text;
	bool is_domain; /* DOMAIN: the API is at api.DOMAIN, and each sandbox has a host of its own
			 */
	bool is_plain;  /* http://, which never leaves this machine */
};

/* Read what --place says: a domain, https://HOST[:PORT][/PATH], or http:// on loopback. */
_warn_unused_ int place_read(const char *text, struct place *ret, struct cloche_err *err);
/* Add the address of the API, without a slash at its end. Return 0 or as buf_add(). */
_warn_unused_ int place_add_api(const struct place *p, struct buf *out);
/* Add the address of the service in a sandbox. domain: what the API has said of where sandboxes
 * are; it counts only below the place's own, so that nobody is led elsewhere by it. */
_warn_unused_ int place_add_envd(
	const struct place *p, struct str sandbox, struct str domain, struct buf *out);

/* Return whether a sandbox may be called so: letters, digits and "-", as in the name of a host. */
bool place_is_id(struct str id);
/* The same of a template: also "_", ".", ":" and "/". */
bool place_is_template(struct str name);
