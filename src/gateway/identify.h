/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds out from the first bytes of a connection which protocol it speaks. Pure. */

#include "base/str.h"

enum identity {
	IDENTITY_MORE, /* not enough bytes yet; never more than IDENTIFY_MAX are asked for */
	IDENTITY_TLS,
	IDENTITY_HTTP, /* begins like a request line; the parser judges */
	IDENTITY_SOCKS4,
	IDENTITY_SOCKS5,
	IDENTITY_SSH,
	IDENTITY_POSTGRES,
	IDENTITY_UNKNOWN,
};

#define IDENTIFY_MAX 24

enum identity identify(struct str first);
/* What the bytes looked like, for a log line. */
const char *identity_text(enum identity id);
