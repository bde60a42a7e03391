/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The proxies of a person's environment (HTTPS_PROXY and its kin), and which of them leads to a
 * host. The rules are curl's, but for what is said here. */

#include "base/err.h"
#include "policy/allowlist.h"
#include "policy/host.h"

struct secret;

/* Longer texts are refused. */
enum { PROXY_URL_MAX = 4096, PROXY_NONE_MAX = 64 * 1024 };

/* What the environment says; borrowed from it. Empty: nothing. */
struct proxy_settings {
	struct str https, http; /* URLs */
	struct str none;        /* NO_PROXY */
	/* The variables that the URLs are from, for messages. */
	const char *https_name, *http_name;
};

struct proxy {
	struct host host;
	uint16_t port;        /* 0: there is no proxy */
	struct secret *login; /* "USER:PASSWORD" in base64, or NULL */
};

struct proxies {
	struct proxy https, http;
	char *none;
};

/* Read "NAME=VALUE" strings, as in environ. The lower-case name comes first, an empty value counts
 * as none, and ALL_PROXY is for both schemes. HTTP_PROXY in upper case is taken, unless this is a
 * CGI program (REQUEST_METHOD), where a client's "Proxy:" field would be in it. With NO_PROXY=* no
 * URL is left. */
struct proxy_settings proxy_settings_from(char *const *env);
/* Take copies, so that the settings may go. p is empty. Return 0, or set err (E_CONFIG), which
 * never shows a URL. */
_warn_unused_ int proxies_set(
	struct proxies *p, const struct proxy_settings *s, struct cloche_err *err);
void proxies_done(struct proxies *p);
/* Return the proxy that leads to the host, or NULL: NO_PROXY has it, or there is none. */
const struct proxy *proxies_find(
	const struct proxies *p, enum policy_scheme scheme, const struct host *host);

static inline void proxies_donep(struct proxies *p)
{
	proxies_done(p);
}
