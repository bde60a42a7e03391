/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A connection to the service by libcurl, which brings TLS and the person's proxies; what is said
 * over it is ours. The certificate is always verified. */

#include "asked/url.h"
#include "base/err.h"
#include <curl/curl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

struct line {
	struct url url;
	CURL *easy; /* NULL: there is no connection */
	int sock;
	char trouble[CURL_ERROR_SIZE];
};

/* Connect, if there is no connection. until: monotonic. */
_warn_unused_ int line_open(struct line *l, uint64_t until, struct cloche_err *err);
void line_close(struct line *l);
/* Return the number of bytes that were moved, 0: not now, or negative: it is over (line_read() also
 * at its end). */
_warn_unused_ ssize_t line_read(struct line *l, char *to, size_t n);
_warn_unused_ ssize_t line_write(struct line *l, const char *p, size_t n);
/* Set the error of a connection that is over. */
int line_cut(const struct line *l, struct cloche_err *err);
