/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The service over HTTP, by libcurl: its certificate is always verified, proxies are those of the
 * environment, and nothing leads elsewhere. */

#include "answer.h"
#include "asked/key.h"
#include <curl/curl.h>

struct service {
	struct place place;
	CURLM *multi;
	char key[sizeof("X-API-Key: ") + KEY_MAX + 1]; /* a line of a head */
};

/* place: of the request, or NULL. Fail if there is no key. */
_warn_unused_ int service_init(struct service *ret, const char *place, struct cloche_err *err);
void service_done(struct service *s);
static inline void service_donep(struct service *s)
{
	service_done(s);
}

/* One request. What points elsewhere is borrowed until it is over. */
struct service_call {
	const char *method, *url;
	struct str body;            /* sent as it is; a null view: none */
	const char *const *headers; /* lines, besides those that every request has; may be NULL */
	/* Takes what comes of the answer's body. Return false to end it; *ret_pause: offer it again
	 * later. */
	bool (*take)(void *user, struct str bytes, bool *ret_pause);
	void *user;
	int patience_sec; /* 0: as long as it takes */

	/* The request under way, and what came of it. */
	CURL *easy;
	struct curl_slist *lines;
	size_t head_bytes;
	bool is_over;
	CURLcode code;
	unsigned status; /* 0: there was no answer */
	char trouble[CURL_ERROR_SIZE];
};

/* Begin a request; service_run() goes on with it. */
_warn_unused_ int service_begin(struct service *s, struct service_call *c, struct cloche_err *err);
/* End it, at any time, and free what it has. */
void service_end(struct service *s, struct service_call *c);
/* Go on with all requests, without waiting. */
_warn_unused_ int service_run(struct service *s, struct cloche_err *err);

/* A request to the API. path: what follows the API's address. Return 0 with the status, whichever
 * it is, and the answer's body in ret; fail if there was no answer. body as above. */
struct service_ask {
	const char *method, *path;
	struct str body;
	int patience_sec;
};
_warn_unused_ int service_ask(struct service *s, const struct service_ask *ask,
	unsigned *ret_status, struct buf *ret, struct cloche_err *err);
/* Set the error of an answer with a status that was not wanted. body: what it says. */
int service_refused(
	const struct service *s, unsigned status, struct str body, struct cloche_err *err);
/* The same of a request without an answer. */
int service_failed(const struct service *s, const struct service_call *c, struct cloche_err *err);
