/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration that a client of cloche sends to its broker, over a socket of their own that
 * passes through no other program's memory: policy, secrets, where to log. Sent once, before any
 * request is served; the broker answers with NETCONF_OK or NETCONF_REFUSED and then reads only for
 * end-of-file.
 *
 * A new policy for a broker that runs comes over another socket, which the supervisor hands over
 * (HELPER_POLICY): any number of ALLOWLIST and ALLOW, then DONE. It takes the place of the old one
 * as a whole, or not at all where anything of it is wrong or the client goes away before DONE. The
 * answer is NETCONF_REPLACED or NETCONF_REFUSED; then the broker closes the socket. */

#include "ipc/chan.h"
#include "ipc/wire.h"

enum {
	NETCONF_MAX_PAYLOAD = 2 * 1024 * 1024,
	NETCONF_MAX_SECRETS = 256,
	/* Longer texts fit into no line of the log, and more would take too much memory. */
	NETCONF_MAX_REDACT = 4096,
	NETCONF_MAX_REDACT_ALL = 16 * 1024,
};

enum netconf_frame {
	NETCONF_ALLOWLIST = 1, /* str label (file name for messages), str YAML text */
	NETCONF_ALLOW,         /* str: one shorthand entry (--allow) */
	NETCONF_SECRET,        /* struct netconf_secret */
	NETCONF_GITHUB_APP,    /* struct netconf_github_app */
	NETCONF_CONNECT_TO,    /* str host, u16 port, str address, u16 port */
	NETCONF_UPSTREAM_CA,   /* str: PEM certificates to trust besides the host's */
	NETCONF_DNS,           /* str: "ADDRESS:PORT,...": servers to ask in place of the host's */
	NETCONF_REDACT,        /* str: a text that the log's URLs shall not show */
	NETCONF_LOG, /* u8 has_plain, u8 has_jsonl, u8 has_live; one fd each in this order */
	NETCONF_DONE,
	NETCONF_OK = 16,  /* broker -> client */
	NETCONF_COUNTS,   /* broker -> client: struct netconf_counts, once, when the broker ends */
	NETCONF_REFUSED,  /* broker -> client: u32 code, str message, str hint */
	NETCONF_REPLACED, /* broker -> client: struct netconf_replaced */
};

struct netconf_secret {
	struct str name;      /* environment variable in the room */
	struct str value;     /* the real one */
	struct str surrogate; /* what the room holds */
	char **scopes;        /* host patterns */
	char **headers;       /* header name patterns */
	bool allow_foreign;
	uint8_t role; /* enum secret_role */
};

_warn_unused_ int netconf_send_secret(struct chan *c, const struct netconf_secret *m);
/* The arrays are heap copies: free with strv_free. */
bool netconf_get_secret(struct str payload, struct netconf_secret *ret);

/* A live secret: what it takes to get its value. */
struct netconf_github_app {
	struct str name, surrogate;
	struct str app_id, installation_id, key, base_url, permissions;
	char **repositories, **scopes;
	bool allow_foreign;
};

_warn_unused_ int netconf_send_github_app(struct chan *c, const struct netconf_github_app *m);
/* The arrays are heap copies: free with strv_free. */
bool netconf_get_github_app(struct str payload, struct netconf_github_app *ret);

struct netconf_connect_to {
	struct str host, address;
	uint16_t port, to_port;
};
/* What the broker decided during its life. */
struct netconf_counts {
	uint64_t allowed, blocked;
};
_warn_unused_ int netconf_send_counts(struct chan *c, const struct netconf_counts *m);
bool netconf_get_counts(struct str payload, struct netconf_counts *ret);

/* What came of a new policy. */
struct netconf_replaced {
	uint32_t rules;  /* it has */
	uint32_t closed; /* requests under way that it forbids */
};
_warn_unused_ int netconf_send_replaced(struct chan *c, const struct netconf_replaced *m);
bool netconf_get_replaced(struct str payload, struct netconf_replaced *ret);

_warn_unused_ int netconf_send_connect_to(struct chan *c, const struct netconf_connect_to *m);
bool netconf_get_connect_to(struct str payload, struct netconf_connect_to *ret);
_warn_unused_ int netconf_send_two(
	struct chan *c, enum netconf_frame type, struct str a, struct str b);
bool netconf_get_two(struct str payload, struct str *ret_a, struct str *ret_b);
_warn_unused_ int netconf_send_refused(struct chan *c, const struct cloche_err *err);
/* Fills err from the message; returns -err->code, or -E_PROTOCOL where malformed. */
int netconf_get_refused(struct str payload, struct cloche_err *err);
