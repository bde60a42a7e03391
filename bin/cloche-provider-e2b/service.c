/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 64 * 1024, CONNECT_MSEC = 10000, URL_MAX = 2048 };
enum { POLL_MSEC = 1000 };

#define KEY_FIELD "X-API-Key: "

/* --- the key --- */

static int service_find_key(struct service *s, struct cloche_err *err)
{
	char key[KEY_MAX + 1];
	int r = key_find(
		"E2B_API_KEY", "E2B_API_KEY_FILE", "the key of your team (e2b_...)", key, err);

	if (r == 0)
		snprintf(s->key, sizeof(s->key), KEY_FIELD "%s", key);
	explicit_bzero(key, sizeof(key));
	return r;
}

int service_init(struct service *ret, const char *place, struct cloche_err *err)
{
	int r = service_find_key(ret, err);

	if (r == 0 && place)
		r = place_read(place, &ret->place, err);
	if (r < 0)
		return r;
	ret->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
	return ret->multi ? 0 : err_nomem(err);
}

void service_done(struct service *s)
{
	if (s->multi)
		curl_multi_cleanup(s->multi);
	s->multi = NULL;
	explicit_bzero(s->key, sizeof(s->key));
}

/* --- one request --- */

static size_t service_on_head(char *line, size_t size, size_t n, void *user)
{
	struct service_call *c = user;

	c->head_bytes += size * n;
	return c->head_bytes > HEAD_MAX ? 0 : size * n;
}

static size_t service_on_body(char *bytes, size_t size, size_t n, void *user)
{
	struct service_call *c = user;
	bool pause = false;

	if (!c->take(c->user, str_make(bytes, size * n), &pause))
		return 0;
	return pause ? CURL_WRITEFUNC_PAUSE : size * n;
}

static bool service_add_line(struct service_call *c, const char *line)
{
	struct curl_slist *more = curl_slist_append(c->lines, line);

	if (more)
		c->lines = more;
	return more != NULL;
}

static CURLcode service_set_body(struct service_call *c)
{
	CURLcode r = curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, c->method);

	if (r == CURLE_OK && c->body.p)
		r = curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.n);
	if (r == CURLE_OK && c->body.p)
		r = curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->body.p);
	return r;
}

/* HTTP/1.1: a stream whose reader waits then holds up its own connection alone, and in the kernel.
 */
#define SET(option, value) (r = r == CURLE_OK ? curl_easy_setopt(c->easy, option, value) : r)
static CURLcode service_set(const struct service *s, struct service_call *c)
{
	const char *roots = getenv("SSL_CERT_FILE");
	CURLcode r = service_set_body(c);

	SET(CURLOPT_URL, c->url);
	SET(CURLOPT_PROTOCOLS_STR, s->place.is_plain ? "http" : "https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MSEC);
	SET(CURLOPT_TIMEOUT_MS, (long)c->patience_sec * 1000);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
	SET(CURLOPT_HTTPHEADER, c->lines);
	SET(CURLOPT_HEADERFUNCTION, service_on_head);
	SET(CURLOPT_HEADERDATA, c);
	SET(CURLOPT_WRITEFUNCTION, service_on_body);
	SET(CURLOPT_WRITEDATA, c);
	SET(CURLOPT_PRIVATE, c);
	SET(CURLOPT_ERRORBUFFER, c->trouble);
	if (roots && *roots)
		SET(CURLOPT_CAINFO, roots);
	/* What is on this machine is not looked for elsewhere. */
	if (s->place.is_plain)
		SET(CURLOPT_PROXY, "");
	return r;
}
#undef SET

int service_begin(struct service *s, struct service_call *c, struct cloche_err *err)
{
	bool ok = service_add_line(c, "Expect:");

	for (size_t i = 0; ok && c->headers && c->headers[i]; i++)
		ok = service_add_line(c, c->headers[i]);
	c->easy = ok ? curl_easy_init() : NULL;
	if (c->easy && service_set(s, c) == CURLE_OK &&
		curl_multi_add_handle(s->multi, c->easy) == CURLM_OK)
		return 0;
	service_end(s, c);
	return err_set(err, E_SYSTEM, "libcurl does not take a request");
}

void service_end(struct service *s, struct service_call *c)
{
	if (c->easy) {
		(void)curl_multi_remove_handle(s->multi, c->easy);
		curl_easy_cleanup(c->easy);
	}
	c->easy = NULL;
	curl_slist_free_all(c->lines);
	c->lines = NULL;
}

int service_run(struct service *s, struct cloche_err *err)
{
	const CURLMsg *m;
	int running, left;

	if (curl_multi_perform(s->multi, &running) != CURLM_OK)
		return err_set(err, E_SYSTEM, "libcurl does not go on");
	while ((m = curl_multi_info_read(s->multi, &left))) {
		struct service_call *c = NULL;
		long status = 0;

		if (m->msg != CURLMSG_DONE ||
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) != CURLE_OK || !c)
			continue;
		c->is_over = true;
		c->code = m->data.result;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
		c->status = c->code == CURLE_OK ? (unsigned)status : 0;
	}
	return 0;
}

/* --- the API --- */

static bool service_take_body(void *user, struct str bytes, bool *ret_pause)
{
	return buf_add_str(user, bytes) == 0;
}

int service_ask(struct service *s, const struct service_ask *ask, unsigned *ret_status,
	struct buf *ret, struct cloche_err *err)
{
	const char *const headers[] = {
		s->key, ask->body.p ? "Content-Type: application/json" : NULL, NULL};
	_cleanup_(buf_donep) struct buf url = BUF_INIT(URL_MAX);
	struct service_call c = {.method = ask->method,
		.body = ask->body,
		.headers = headers,
		.take = service_take_body,
		.user = ret,
		.patience_sec = ask->patience_sec};
	int r = place_add_api(&s->place, &url);

	if (r == 0)
		r = buf_add_str(&url, str_from(ask->path));
	c.url = r == 0 ? buf_cstr(&url) : NULL;
	if (!c.url)
		return err_set(err, E_LIMIT, "the address is too long");
	r = service_begin(s, &c, err);
	while (r == 0 && !c.is_over) {
		r = service_run(s, err);
		if (r == 0 && !c.is_over &&
			curl_multi_poll(s->multi, NULL, 0, POLL_MSEC, NULL) != CURLM_OK)
			r = err_set(err, E_SYSTEM, "libcurl does not wait");
	}
	if (r == 0 && !c.status)
		r = service_failed(s, &c, err);
	*ret_status = c.status;
	service_end(s, &c);
	return r;
}

static const char *service_hint(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return "see whether E2B_API_KEY (or the file E2B_API_KEY_FILE) is a key of your "
		       "team at this place";
	case 429:
		return "end sandboxes that you do not need, or wait: the service limits how many "
		       "there are and how fast they are made";
	case 404:
		return "see whether --place is the service that you mean, and whether it has "
		       "what was asked for";
	default:
		return status >= 500 ? "try again; the service's status page may say more"
				     : "see what the service says, and whether --place is right";
	}
}

int service_refused(
	const struct service *s, unsigned status, struct str body, struct cloche_err *err)
{
	char said[ANSWER_TEXT_MAX + 1];
	struct str place = s->place.text;

	answer_message(body, said);
	if (status >= 300 && status < 400) {
		err_set(err, E_NETWORK, "%.*s leads elsewhere (%u), where the key is not sent",
			STR_FMT(place), status);
		err_hint(err, "--place is the address of the API itself");
		return -E_NETWORK;
	}
	err_set(err, E_DENIED, "%.*s %s (%u)%s%s", STR_FMT(place),
		status == 401 || status == 403 ? "does not take the key"
		: status == 429                ? "has given us all that it gives now"
		: status >= 500                ? "fails"
					       : "refuses",
		status, said[0] ? ": " : "", said);
	err_hint(err, "%s", service_hint(status));
	return -E_DENIED;
}

/* What libcurl says has bytes of the other side in it at most as they are. */
static void service_show(const char *text, char ret[CURL_ERROR_SIZE])
{
	size_t n = 0;

	for (; text[n] && n < CURL_ERROR_SIZE - 1; n++)
		ret[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
	ret[n] = '\0';
}

int service_failed(const struct service *s, const struct service_call *c, struct cloche_err *err)
{
	char text[CURL_ERROR_SIZE];
	const char *hint = "see whether this machine reaches it (HTTPS_PROXY names a proxy)";

	service_show(c->trouble[0] ? c->trouble : curl_easy_strerror(c->code), text);
	if (c->code == CURLE_WRITE_ERROR) {
		snprintf(text, sizeof(text), "its answer is too long, or not of the protocol");
		hint = "see whether --place is a service that speaks the protocol of E2B";
	}
	if (c->code == CURLE_COULDNT_RESOLVE_HOST)
		hint = "see whether --place is spelled right, and whether names are resolved here";
	if (c->code == CURLE_PEER_FAILED_VERIFICATION || c->code == CURLE_SSL_CACERT_BADFILE)
		hint = "a service with a certificate authority of its own needs SSL_CERT_FILE";
	err_set(err, E_NETWORK, "%.*s does not answer: %s", STR_FMT(s->place.text), text);
	err_hint(err, "%s", hint);
	return -E_NETWORK;
}
