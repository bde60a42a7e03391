/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict reading of the two ClientHello extensions that decide what a connection is for. Input is
 * the body of the extension as it came (without type and length). Pure. */

#include "base/str.h"

#define HELLO_NAME_MAX 253

enum hello_sni {
	HELLO_SNI_OK,
	HELLO_SNI_MALFORMED, /* lengths do not fit (RFC 6066 3) */
	HELLO_SNI_MANY,      /* not exactly one name, or one of another type */
	HELLO_SNI_NAME,      /* not labels of letters, digits, '-', '_'; or too long */
};

/* Reads server_name. One dot at the end is dropped. ret_name is a view into body, set for
 * HELLO_SNI_OK only; whether it is a name and not an address is judged by policy. */
enum hello_sni hello_sni_parse(struct str body, struct str *ret_name);
/* Fixed English text for the log. */
const char *hello_sni_text(enum hello_sni e);

enum hello_alpn { HELLO_ALPN_OK, HELLO_ALPN_MALFORMED };

/* Reads application_layer_protocol_negotiation (RFC 7301 3.1) and says whether it has protocol. */
enum hello_alpn hello_alpn_parse(struct str body, struct str protocol, bool *ret_has);
