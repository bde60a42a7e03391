/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The address of a service, as --place names it. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

enum { URL_TEXT_MAX = 512, URL_HOST_MAX = 253 };

/* Borrows the text that it was read from. */
struct url {
	struct str text; /* the whole, without a slash at its end */
	struct str host; /* with brackets, if it is an IPv6 address */
	struct str path; /* "" or "/...", without a slash at its end */
	uint16_t port;   /* 0: none was named */
	bool is_plain;   /* http://, which never leaves this machine */
};

/* Read https://HOST[:PORT][/PATH], or http:// on loopback. Return 0, -EINVAL, or -EPERM: it is such
 * a URL, but http:// and not on loopback. */
_warn_unused_ int url_read(struct str text, struct url *ret);
/* Return whether a host may be called so. */
bool url_is_host(struct str host);
