/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One login while it is renewed: its file, its endpoint, its file again. Only renew.c and renewal.c
 * include this. */

#include "base/buf.h"
#include "base/secmem.h"
#include "broker/fetch.h"
#include "login/login.h"
#include "loop/loop.h"

enum renewal_state {
	RENEW_IDLE,
	RENEW_OPENING, /* asked the supervisor for the file */
	RENEW_ASKING,  /* ... the endpoint for a token */
	RENEW_SAVING,  /* there is a token; writing it into the file */
};

struct renewal {
	struct renewal *next;
	struct broker *broker;
	struct login *login;
	size_t member; /* of the set of secrets */
	unsigned number;
	enum renewal_state state;
	unsigned tries;
	uint64_t expires_msec; /* of the secret's value; 0: not known */
	/* Monotonic; 0: it never happened. */
	uint64_t failed_at, doubted_at;
	char error[NOTE_MAX];
	bool hopeless;          /* it fails until the person has logged in again */
	struct secret *doubted; /* the access token that an origin has refused; or NULL */
	/* The refresh token in the file as it was last used or written, and the one to use in its
	 * place: they differ if a new one could not be written. */
	struct secret *seen, *last;
	bool refused;            /* `last` is not valid any more */
	struct login_tokens got; /* RENEW_SAVING: what is written */
	struct buf text;         /* of the file */
	int fresh;               /* what replaces it */
	struct loop_timer again;
	struct fetch fetch;
};

/* The secret that is the access token. */
const struct masked_secret *renewal_secret(const struct renewal *g);
/* Begin, unless it is under way; renew_wake() is called in the end. */
void renewal_start(struct renewal *g);
/* Free what it holds while it is under way. */
void renewal_close(struct renewal *g);
/* Return whether one of them is under way. */
bool renewals_are_busy(const struct broker *b);

/* Return whether a token that ends at this time is at its end. */
bool renewal_is_over(uint64_t expires_msec);
bool renewal_is_same(const struct secret *a, const struct secret *b);
/* NULL gives NULL, and so does lack of memory. */
struct secret *renewal_copy(const struct secret *s);
/* Of g->fetch: take the endpoint's answer. */
void renewal_fetched(struct fetch *f);

/* renew.c: let the streams that wait go on (have: there is a token), or refuse them with g->error.
 */
void renew_wake(struct renewal *g, bool have);
