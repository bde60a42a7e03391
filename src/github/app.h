/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A GitHub App installation as a credential: make the requests for a short-lived token, and read
 * the answers. This code does not send or receive anything itself. Source: GitHub's REST
 * documentation, "Generating an installation access token for a GitHub App", API version
 * 2022-11-28. */

#include "base/buf.h"
#include "base/err.h"
#include "base/secmem.h"
#include "policy/host.h"

struct github_app;

/* The description of an App; all of it is borrowed. */
struct github_app_spec {
	struct str app_id, installation_id; /* digits; the app's may be its client id */
	struct str key;                     /* PEM of an RSA key, PKCS#1 or PKCS#8 */
	struct str base_url;                /* "https://api.github.com", or ".../api/v3" */
	struct str permissions;             /* a JSON object, or empty: all that it has */
	char **repositories;                /* bare names; NULL or empty: all that it has */
};

/* Check everything and parse the key; keep no copy of its text. Return 0, or negative
 * (E_CONFIG); no message shows the key. */
_warn_unused_ int github_app_new(
	const struct github_app_spec *spec, struct github_app **ret, struct cloche_err *err);
struct github_app *github_app_free(struct github_app *app);
DEFINE_CLEANUP(struct github_app, github_app_free)

/* Host and port of its API; borrowed. */
const struct host *github_app_host(const struct github_app *app);
uint16_t github_app_port(const struct github_app *app);

/* Add a signed JSON Web Token (RFC 7519, RS256) that is good from a minute before now for ten
 * minutes. now: seconds since 1970. Return 0 or a negative errno. */
_warn_unused_ int github_app_jwt(const struct github_app *app, uint64_t now, struct buf *out);

/* Add the target, and the body, of the request for a token (POST). */
_warn_unused_ int github_token_target(const struct github_app *app, struct buf *out);
_warn_unused_ int github_token_body(const struct github_app *app, struct buf *out);
/* Add the target of page n (from 1) of the list of repositories (GET, with the token). */
_warn_unused_ int github_repositories_target(
	const struct github_app *app, unsigned page, struct buf *out);

#define GITHUB_PAGE 100 /* repositories a page */

/* Read the answer to the request for a token; ret_expires: seconds since 1970. Return 0, or
 * negative (E_PROTOCOL; the message has no text of the answer). */
_warn_unused_ int github_token_read(
	struct str body, struct secret **ret, uint64_t *ret_expires, struct cloche_err *err);

#define GITHUB_REPOSITORIES_MAX 10000

/* A repository of the list; the texts are borrowed. */
struct github_repository {
	struct str full_name; /* "owner/name" */
	struct str node_id;   /* in the older or the newer form; empty: none */
	uint64_t id;          /* the database id; 0: none */
};

/* Call add() for each repository of a page that the App's own list includes; ret_n is how many
 * entries the page had. Leave out an entry without a full name, and one for which add() returns
 * -EINVAL, so that GraphQL requests reach less, never more. add() returns 0, -EINVAL or -ENOMEM.
 * Return 0 or negative. */
_warn_unused_ int github_repositories_read(const struct github_app *app, struct str body,
	int (*add)(void *user, const struct github_repository *repository), void *user,
	unsigned *ret_n, struct cloche_err *err);
