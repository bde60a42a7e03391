/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The login of a person: a file of JSON that another program keeps, with an access token, a refresh
 * token and the time at which the access token ends; and how it is renewed (RFC 6749 section 6).
 * This code opens no file and sends nothing itself. No message shows a token, or text of an answer.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/secmem.h"
#include "policy/host.h"

enum {
	LOGIN_FILE_MAX = 256 << 10, /* bytes */
	LOGIN_ANSWER_MAX = 64 << 10,
	LOGIN_TOKEN_MIN = 8,
	LOGIN_TOKEN_MAX = 8192,
};

struct login;

/* The description of one. Lists are those of base/strv.h; NULL is an empty one. */
struct login_spec {
	char *file; /* below the person's home, for messages */
	char *lock; /* beside it, the directory that whoever renews it makes; NULL: none */
	/* The names of the members that lead to the tokens, and to the time in milliseconds since
	 * 1970 at which the access token ends. Without that, a JSON Web Token says itself when. */
	char **token, **refresh, **expires;
	char *url; /* of the token endpoint, https://HOST[:PORT]/PATH; NULL: nobody renews it */
	char *client_id;     /* of the program whose login it is */
	char *client_secret; /* of that program, which is public; NULL: none */
	bool form;           /* the request is a form, as RFC 6749 has it; else JSON */
	char *again;         /* the command by which a person logs in again, for messages */
};

/* Return 0 or -ENOMEM. *to must be given to login_spec_done() in every case. */
_warn_unused_ int login_spec_copy(const struct login_spec *from, struct login_spec *to);
void login_spec_done(struct login_spec *spec);

/* Copy and check a description. Return 0, or negative (E_CONFIG). */
_warn_unused_ int login_new(
	const struct login_spec *spec, struct login **ret, struct cloche_err *err);
struct login *login_free(struct login *l);
DEFINE_CLEANUP(struct login, login_free)

/* All of it is borrowed. */
const struct login_spec *login_spec_of(const struct login *l);
/* Where it is renewed. */
const struct host *login_host(const struct login *l);
uint16_t login_port(const struct login *l);
struct str login_target(const struct login *l);

struct login_tokens {
	struct secret *access;  /* NULL: none */
	struct secret *refresh; /* NULL: none */
	uint64_t expires_msec;  /* since 1970; 0: not known */
};
void login_tokens_done(struct login_tokens *t);

/* Return the end of a token that is a JSON Web Token (RFC 7519) and has one, in milliseconds since
 * 1970; else 0. Nothing of it is verified. */
uint64_t login_token_end(struct str token);

/* Read the file's text; a token that is no token is none. Return 0, or negative (E_CONFIG: it is no
 * JSON). *ret must be given to login_tokens_done() in every case. */
_warn_unused_ int login_file_read(
	const struct login *l, struct str text, struct login_tokens *ret, struct cloche_err *err);
/* Add the file's text with these tokens in it (those that are NULL or 0 stay), and every other
 * member as it was. Return 0 or negative. */
_warn_unused_ int login_file_write(const struct login *l, struct str text,
	const struct login_tokens *tokens, struct buf *out, struct cloche_err *err);

/* The request (POST): its Content-Type, and its body, which holds the refresh token. */
struct str login_request_type(const struct login *l);
_warn_unused_ int login_request_body(const struct login *l, struct str refresh, struct buf *out);

/* Read the answer. now_msec: since 1970. Return 0, or negative (E_PROTOCOL). An answer without a
 * refresh token leaves the old one valid. *ret as for login_file_read(). */
_warn_unused_ int login_answer_read(
	struct str body, uint64_t now_msec, struct login_tokens *ret, struct cloche_err *err);
/* Return whether the body of an error, in the form of RFC 6749 or with an object in it, says that
 * the refresh token is not valid (any more). */
bool login_answer_refuses(struct str body);
