/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_CONNECT_MSEC = 10000 };

#define SET(option, value) (r = r == CURLE_OK ? curl_easy_setopt(l->easy, option, value) : r)
static CURLcode line_set(struct line *l, long msec)
{
	const char *roots = getenv("SSL_CERT_FILE");
	CURLcode r = CURLE_OK;

	SET(CURLOPT_CONNECT_ONLY, 1L);
	SET(CURLOPT_PROTOCOLS_STR, l->url.is_plain ? "http" : "https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, msec);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_ERRORBUFFER, l->trouble);
	if (roots && *roots)
		SET(CURLOPT_CAINFO, roots);
	/* What is on this machine is not looked for elsewhere. Else a tunnel is asked for, so that
	 * the proxy sees nothing. */
	if (l->url.is_plain)
		SET(CURLOPT_PROXY, "");
	return r;
}
#undef SET

/* What libcurl says has bytes of the other side in it at most as they are. */
static void line_show(const char *text, char ret[CURL_ERROR_SIZE])
{
	size_t n = 0;

	for (; text[n] && n < CURL_ERROR_SIZE - 1; n++)
		ret[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
	ret[n] = '\0';
}

static int line_fail(const struct line *l, CURLcode code, struct cloche_err *err)
{
	const char *hint = "see whether this machine reaches it (HTTPS_PROXY names a proxy)";
	char text[CURL_ERROR_SIZE];

	line_show(l->trouble[0] ? l->trouble : curl_easy_strerror(code), text);
	if (code == CURLE_COULDNT_RESOLVE_HOST)
		hint = "see whether --place is spelled right, and whether names are resolved here";
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		hint = "a service with a certificate authority of its own needs SSL_CERT_FILE";
	err_set(err, E_NETWORK, "%.*s does not answer: %s", STR_FMT(l->url.text), text);
	err_hint(err, "%s", hint);
	return -E_NETWORK;
}

int line_open(struct line *l, uint64_t until, struct cloche_err *err)
{
	uint64_t now = clock_mono_usec(), left = now < until ? (until - now) / USEC_PER_MSEC : 0;
	_cleanup_(freep) char *url = str_dup(l->url.text);
	curl_socket_t sock = CURL_SOCKET_BAD;
	CURLcode r = CURLE_OUT_OF_MEMORY;

	if (l->easy)
		return 0;
	l->easy = url ? curl_easy_init() : NULL;
	if (!l->easy)
		return err_nomem(err);
	l->trouble[0] = '\0';
	r = curl_easy_setopt(l->easy, CURLOPT_URL, url);
	if (r == CURLE_OK)
		r = line_set(l, (long)MIN(MAX(left, UINT64_C(1)), (uint64_t)LINE_CONNECT_MSEC));
	if (r == CURLE_OK)
		r = curl_easy_perform(l->easy);
	if (r == CURLE_OK)
		r = curl_easy_getinfo(l->easy, CURLINFO_ACTIVESOCKET, &sock);
	if (r == CURLE_OK && sock != CURL_SOCKET_BAD) {
		l->sock = sock;
		return 0;
	}
	(void)line_fail(l, r, err);
	line_close(l);
	return -E_NETWORK;
}

void line_close(struct line *l)
{
	if (l->easy)
		curl_easy_cleanup(l->easy);
	l->easy = NULL;
	l->sock = -1;
}

ssize_t line_read(struct line *l, char *to, size_t n)
{
	size_t got = 0;
	CURLcode r = curl_easy_recv(l->easy, to, n, &got);

	if (r == CURLE_AGAIN)
		return 0;
	return r == CURLE_OK && got ? (ssize_t)got : -EPIPE;
}

ssize_t line_write(struct line *l, const char *p, size_t n)
{
	size_t put = 0;
	CURLcode r = curl_easy_send(l->easy, p, n, &put);

	if (r == CURLE_AGAIN)
		return 0;
	return r == CURLE_OK ? (ssize_t)put : -EPIPE;
}

int line_cut(const struct line *l, struct cloche_err *err)
{
	err_set(err, E_NETWORK, "%.*s has ended the connection", STR_FMT(l->url.text));
	err_hint(err, "try again; see whether --place is the address of the service");
	return -E_NETWORK;
}
