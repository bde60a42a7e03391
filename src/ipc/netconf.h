/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration that a client of cloche sends to its broker: policy, secrets, log files. It
 * goes over a socket of its own and passes through no other program's memory. It is sent once,
 * before any request is served; the broker answers with NETCONF_OK or NETCONF_REFUSED and then only
 * waits for end-of-file.
 *
 * A new policy for a running broker comes over another socket, which the supervisor hands over
 * (HELPER_POLICY): any number of ALLOWLIST and ALLOW, then DONE. It replaces the old policy as a
 * whole (or is added to it, if a KEEP comes before DONE), or not at all if any part is wrong or the
 * client disconnects before DONE. The answer is NETCONF_REPLACED or NETCONF_REFUSED; then the
 * broker closes the socket.
 *
 * A person who is asked comes over such a socket, too: WATCH, which is answered with OK. From then
 * on the broker sends a QUESTION for each request that an allowlist could allow and the policy
 * does not, and holds the request until an ANSWER, or WITHDRAWN if somebody else has answered, the
 * room has given up, or the policy was changed. */

#include "ipc/message.h"
#include "ipc/netchan.h"

enum {
	NETCONF_MAX_PAYLOAD = 2 * 1024 * 1024,
	NETCONF_MAX_NAME = 256,
	NETCONF_MAX_VALUE = 64 * 1024,
	NETCONF_MAX_PATTERNS = 256,
	NETCONF_MAX_REPOSITORIES = 500,
	NETCONF_MAX_PATTERN = 512,
	NETCONF_MAX_LOGIN_NAMES = 8,
	NETCONF_MAX_PROXY = 4096,
	/* Longer texts do not fit into a line of the log, and more of them would take too much
	 * memory. */
	NETCONF_MAX_REDACT = 4096,
	NETCONF_MAX_REDACT_ALL = 16 * 1024,
};

enum netconf_frame {
	NETCONF_ALLOWLIST = 1, /* struct netconf_allowlist */
	NETCONF_ALLOW,         /* str: one shorthand entry (--allow); behind '!' a denial */
	NETCONF_SECRET,        /* struct netconf_secret */
	NETCONF_GITHUB_APP,    /* struct netconf_github_app */
	NETCONF_CONNECT_TO,    /* struct netconf_connect_to */
	NETCONF_UPSTREAM_CA,   /* str: PEM certificates to trust besides the host's */
	NETCONF_DNS,           /* str: "ADDRESS:PORT,...": DNS servers instead of the host's */
	NETCONF_REDACT,        /* str: a text that must not appear in the log's URLs */
	NETCONF_LOG,           /* struct netconf_log; one fd for each that is set, in this order */
	NETCONF_RECORD,        /* struct netconf_record; 1 fd: the file that records requests */
	NETCONF_OFFLINE,       /* nothing; 1 fd: a cassette that answers all requests */
	NETCONF_DONE,
	NETCONF_KEEP,      /* nothing: the new policy is added to the one in force */
	NETCONF_WATCH,     /* nothing: the client wants to be asked */
	NETCONF_ANSWER,    /* struct netconf_answer */
	NETCONF_OK = 16,   /* broker -> client */
	NETCONF_COUNTS,    /* broker -> client: struct netconf_counts, once, when the broker ends */
	NETCONF_REFUSED,   /* broker -> client: an error */
	NETCONF_REPLACED,  /* broker -> client: struct netconf_replaced */
	NETCONF_QUESTION,  /* broker -> client: struct netconf_question */
	NETCONF_WITHDRAWN, /* broker -> client: struct netconf_withdrawn */
	NETCONF_PROXY = 32, /* client -> broker: struct netconf_proxy */
	NETCONF_LOGIN,      /* client -> broker: struct netconf_login, behind its secret */
};

#define NETCONF_ALLOWLIST_FIELDS(F)                                                                \
	F(STR, label, .max = NETCONF_MAX_PAYLOAD) /* file name for messages */                     \
	F(STR, text, .max = NETCONF_MAX_PAYLOAD)  /* YAML */
MESSAGE(netconf, allowlist, NETCONF_ALLOWLIST, NETCONF_ALLOWLIST_FIELDS);

/* The arrays are heap copies: free with strv_free. */
#define NETCONF_SECRET_FIELDS(F)                                                                   \
	F(STR, name, .max = NETCONF_MAX_NAME)       /* environment variable in the room */         \
	F(STR, value, .max = NETCONF_MAX_VALUE)     /* the real value */                           \
	F(STR, surrogate, .max = NETCONF_MAX_VALUE) /* the value in the room */                    \
	/* host patterns */                                                                        \
	F(STRV, scopes, .max_n = NETCONF_MAX_PATTERNS, .max = NETCONF_MAX_PATTERN)                 \
	/* header name patterns */                                                                 \
	F(STRV, headers, .max_n = NETCONF_MAX_PATTERNS, .max = NETCONF_MAX_PATTERN)                \
	F(BOOL, allow_foreign)                                                                     \
	F(U8, role) /* enum secret_role */
MESSAGE(netconf, secret, NETCONF_SECRET, NETCONF_SECRET_FIELDS);

/* A live secret: what the broker needs to obtain its value. The arrays are heap copies: free with
 * strv_free. */
#define NETCONF_GITHUB_APP_FIELDS(F)                                                               \
	F(STR, name, .max = NETCONF_MAX_NAME)                                                      \
	F(STR, surrogate, .max = NETCONF_MAX_NAME)                                                 \
	F(STR, app_id, .max = NETCONF_MAX_NAME)                                                    \
	F(STR, installation_id, .max = NETCONF_MAX_NAME)                                           \
	F(STR, key, .max = NETCONF_MAX_VALUE)                                                      \
	F(STR, base_url, .max = NETCONF_MAX_PATTERN)                                               \
	F(STR, permissions, .max = NETCONF_MAX_VALUE)                                              \
	F(STRV, repositories, .max_n = NETCONF_MAX_REPOSITORIES, .max = NETCONF_MAX_NAME)          \
	F(STRV, scopes, .max_n = NETCONF_MAX_PATTERNS, .max = NETCONF_MAX_PATTERN)                 \
	F(BOOL, allow_foreign)
MESSAGE(netconf, github_app, NETCONF_GITHUB_APP, NETCONF_GITHUB_APP_FIELDS);

/* The secret of this name is the access token of a login, which the broker renews (login/login.h).
 * Free it with message_done(). */
#define NETCONF_LOGIN_FIELDS(F)                                                                    \
	F(STR, name, .max = NETCONF_MAX_NAME)                                                      \
	F(U8, number)        /* of the supervisor's directories (HELPER_LOGIN_OPEN) */             \
	F(U64, expires_msec) /* of the secret, since 1970; 0: not known */                         \
	F(Z, file, .max = NETCONF_MAX_PATTERN)                                                     \
	F(STRV, token, .max_n = NETCONF_MAX_LOGIN_NAMES, .max = NETCONF_MAX_NAME)                  \
	F(STRV, refresh, .max_n = NETCONF_MAX_LOGIN_NAMES, .max = NETCONF_MAX_NAME)                \
	F(STRV, expires, .max_n = NETCONF_MAX_LOGIN_NAMES, .max = NETCONF_MAX_NAME)                \
	F(Z, url, .max = NETCONF_MAX_PATTERN)                                                      \
	F(Z, client_id, .max = NETCONF_MAX_NAME)                                                   \
	F(OPTIONAL, client_secret, .max = NETCONF_MAX_NAME)                                        \
	F(BOOL, form)                                                                              \
	F(OPTIONAL, again, .max = NETCONF_MAX_NAME)
MESSAGE(netconf, login, NETCONF_LOGIN, NETCONF_LOGIN_FIELDS);

#define NETCONF_CONNECT_TO_FIELDS(F)                                                               \
	F(STR, host, .max = NETCONF_MAX_PATTERN)                                                   \
	F(U16, port)                                                                               \
	F(STR, address, .max = NETCONF_MAX_PATTERN)                                                \
	F(U16, to_port)
MESSAGE(netconf, connect_to, NETCONF_CONNECT_TO, NETCONF_CONNECT_TO_FIELDS);

/* What a person's environment says of proxies (policy/proxy.h); the URLs may hold a password. */
#define NETCONF_PROXY_FIELDS(F)                                                                    \
	F(STR, https, .max = NETCONF_MAX_PROXY)                                                    \
	F(STR, http, .max = NETCONF_MAX_PROXY)                                                     \
	F(STR, none, .max = NETCONF_MAX_VALUE)
MESSAGE(netconf, proxy, NETCONF_PROXY, NETCONF_PROXY_FIELDS);

#define NETCONF_LOG_FIELDS(F)                                                                      \
	F(BOOL, plain)                                                                             \
	F(BOOL, json)                                                                              \
	F(BOOL, live)                                                                              \
	F(BOOL, kept) /* the sandbox's own log, in JSON: it may be cut at its front */
MESSAGE_WITH_FDS(netconf, log, NETCONF_LOG_FIELDS);

#define NETCONF_RECORD_FIELDS(F) F(U64, limit) /* bytes; 0: a default */
MESSAGE_WITH_FD(netconf, record, NETCONF_RECORD, NETCONF_RECORD_FIELDS);

/* The broker's decisions during its life. */
#define NETCONF_COUNTS_FIELDS(F)                                                                   \
	F(U64, allowed)                                                                            \
	F(U64, blocked)
MESSAGE(netconf, counts, NETCONF_COUNTS, NETCONF_COUNTS_FIELDS);

/* The result of a new policy. */
#define NETCONF_REPLACED_FIELDS(F)                                                                 \
	F(U32, rules)  /* number of rules */                                                       \
	F(U32, closed) /* open requests that it forbids */
MESSAGE(netconf, replaced, NETCONF_REPLACED, NETCONF_REPLACED_FIELDS);

/* A request that waits for an answer. Texts may be any bytes. */
#define NETCONF_QUESTION_FIELDS(F)                                                                 \
	F(U32, number)                                                                             \
	F(BOOL, is_host) /* no rule names the host */                                              \
	F(STR, scheme, .max = 16)                                                                  \
	F(STR, host, .max = NET_MAX_HOST)                                                          \
	F(U16, port)                                                                               \
	F(STR, method, .max = NET_MAX_METHOD, .flags = FIELD_CUT)                                  \
	F(STR, target, .max = NETCONF_MAX_NAME * 8, .flags = FIELD_CUT)                            \
	F(PART, owner, net_owner)                                                                  \
	F(STR, suggestion, .max = NETCONF_MAX_VALUE) /* YAML that allows exactly this request */
MESSAGE(netconf, question, NETCONF_QUESTION, NETCONF_QUESTION_FIELDS);

#define NETCONF_ANSWER_FIELDS(F)                                                                   \
	F(U32, number)                                                                             \
	F(BOOL, allow) /* this request alone; else it is refused */
MESSAGE(netconf, answer, NETCONF_ANSWER, NETCONF_ANSWER_FIELDS);

#define NETCONF_WITHDRAWN_FIELDS(F) F(U32, number)
MESSAGE(netconf, withdrawn, NETCONF_WITHDRAWN, NETCONF_WITHDRAWN_FIELDS);

MESSAGE_ERROR(netconf, refused, NETCONF_REFUSED, "the broker's answer is malformed");
