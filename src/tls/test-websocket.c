/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"
#include "tls/websocket.h"

/* RFC 6455 1.3. */
static void the_accept_of_a_key(void)
{
	char accept[TLS_WEBSOCKET_ACCEPT];

	tls_websocket_accept(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
	check_z(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void keys_differ(void)
{
	char a[TLS_WEBSOCKET_KEY], b[TLS_WEBSOCKET_KEY];

	tls_websocket_key(a);
	tls_websocket_key(b);
	check_int(strlen(a), 24);
	check_str(str_from_index(str_from(a), 22), "==");
	check(strcmp(a, b) != 0);
}

int main(void)
{
	run_test(the_accept_of_a_key);
	run_test(keys_differ);
	return tap_done();
}
