/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict reading of the two ClientHello extensions that decide what a connection is for. Pure. */

#include "base/str.h"

#define HELLO_NAME_MAX 253

enum hello_sni {
	HELLO_SNI_OK,
	HELLO_SNI_MALFORMED, /* lengths do not fit (RFC 6066 3) */
	HELLO_SNI_MANY,      /* not exactly one name, or one of another type */
	HELLO_SNI_NAME,      /* not labels of letters, digits, '-', '_'; or too long */
};

/* Read the body of server_name (without type and length). One dot at the end is dropped. ret_name
 * is a view into body, set only for HELLO_SNI_OK. The policy judges whether it is a name and not an
 * address. */
enum hello_sni hello_sni_parse(struct str body, struct str *ret_name);
/* Fixed English text for the log. */
const char *hello_sni_text(enum hello_sni e);

/* Whether the ClientHello at the beginning of these records (RFC 8446 4.1.2, 5.1) may mean another
 * name than its server_name: it has encrypted_client_hello (RFC 9849 5) or its draft, is above 16
 * KiB, or cannot be read. It ends where a record ends. */
bool hello_hides_name(struct str records);

/* Return the body of application_layer_protocol_negotiation without its outer length, or the null
 * view if that length is wrong. */
struct str hello_alpn_list(struct str body);
/* Whether a list of protocols as in application_layer_protocol_negotiation (RFC 7301 3.1, without
 * its outer length) is well-formed and has this protocol. */
bool hello_alpn_has(struct str list, struct str protocol);
