/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests and fuzz targets: compares our parser with another one, llhttp in its strict mode. What
 * we accept, it must accept too, and understand in the same way: method or status, target, fields,
 * body, and where the message ends. The reverse need not hold: we refuse more.
 *
 * Intended differences, each looked for in testing-llhttp.c under this letter:
 *  a. Methods: we take any token, llhttp those of its list.
 *  b. A tab behind Content-Length or "chunked" is optional white space (RFC 9110 5.5); llhttp
 *     refuses it, or takes it for another coding of a response.
 *  c. Responses: folded lines, LF alone behind a line of the head, repeated equal lengths (also as
 *     a list), and a length beside Transfer-Encoding are tolerated as h1.c says; llhttp refuses
 *     them.
 *  d. Proxy-Connection is Connection for llhttp, which no RFC says.
 *  e. A target in absolute form is rewritten to origin form by us.
 *  f. CONNECT and what follows 101 have no body and no next message that both could name.
 *  g. Trailers that frame or close are dropped by us and never written (RFC 9110 6.5.1); llhttp
 * reads them as if they stood in the head.
 *  h. Responses: llhttp refuses a chunk extension behind another one with a value (RFC 9112 7.1.1),
 *     and blanks behind a chunk's size.
 *  i. Characters beyond ASCII in a query are percent-encoded by us.
 */

#include "http/body.h"

enum llhttp_verdict {
	LLHTTP_NO_CLAIM,     /* we refused, or c applies */
	LLHTTP_SAME_SO_FAR,  /* an unfinished message */
	LLHTTP_SAME_HEAD,    /* a whole head, an unfinished body or f */
	LLHTTP_SAME_MESSAGE, /* a whole message; *ret_end is where the next one starts */
	LLHTTP_DIFFERS,      /* *ret_what says in what */
};

/* Both parse the message that in begins with; opt as for h1_parser_response(), 0 for a request.
 * *ret_keep_alive: after a whole message, whether we would read another. */
enum llhttp_verdict llhttp_compare(struct str in, bool request, unsigned opt, size_t *ret_end,
	bool *ret_keep_alive, const char **ret_what);
