/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/identify.h"
#include "tap.h"

#define IS(text, want) check_int(identify(STR(text)), want)

static void test_http(void)
{
	IS("GET /", IDENTITY_HTTP);
	IS("get /", IDENTITY_HTTP);
	IS("\r\nGET /", IDENTITY_HTTP);
	IS("PRI * HTTP/2.0", IDENTITY_HTTP);
	IS("CONNECT a:1", IDENTITY_HTTP);
	IS("ABCDEFGHIJKLMNOPQ", IDENTITY_HTTP); /* its parser says 501 */
	IS("0032git-upload-pack /", IDENTITY_UNKNOWN);
	IS("\r\n\r\nGET /", IDENTITY_UNKNOWN);
	IS(" GET /", IDENTITY_UNKNOWN);
	IS("GET\t/", IDENTITY_UNKNOWN);
	IS("USER x\r\n", IDENTITY_HTTP);
	IS("PING\r\n", IDENTITY_UNKNOWN);
}

static void test_others(void)
{
	IS("\x16\x03\x01", IDENTITY_TLS);
	IS("\x04\x01", IDENTITY_SOCKS4);
	IS("\x05\x01", IDENTITY_SOCKS5);
	IS("SSH-2.0-OpenSSH", IDENTITY_SSH);
	IS("\0\0\0\x08\x04\xd2\x16\x2f", IDENTITY_POSTGRES);
	IS("\0\0\0\x29\0\x03\0\0user", IDENTITY_POSTGRES);
	IS("\0\0\0\0\0\0\0\0", IDENTITY_UNKNOWN);
	IS("\x80\x2e\x01", IDENTITY_UNKNOWN); /* SSLv2 */
	IS("\xff\xfe", IDENTITY_UNKNOWN);
}

/* However little has come, the answer is either final or "more", and more bytes than IDENTIFY_MAX
 * are never asked for. */
static void test_prefixes(void)
{
	static const struct {
		struct str text;
		enum identity id;
	} all[] = {
		{{"OPTIONS * HTTP/1.1\r\n", 20}, IDENTITY_HTTP},
		{{"\r\nDELETE /x HTTP/1.1", 20}, IDENTITY_HTTP},
		{{"SSH-2.0-OpenSSH_9.2p1 Debian", 28}, IDENTITY_SSH},
		{{"\0\0\0\x08\x04\xd2\x16\x2f", 8}, IDENTITY_POSTGRES},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (size_t n = 0; n <= all[i].text.n; n++) {
			enum identity id = identify(str_prefix(all[i].text, n));

			check(id == IDENTITY_MORE || id == all[i].id);
		}
	}
	for (int c = 0; c < 256; c++) {
		char text[IDENTIFY_MAX];

		memset(text, c, sizeof(text));
		check(identify(str_make(text, sizeof(text))) != IDENTITY_MORE);
		memcpy(text, "\r\n", 2);
		check(identify(str_make(text, sizeof(text))) != IDENTITY_MORE);
	}
}

int main(void)
{
	run_test(test_http);
	run_test(test_others);
	run_test(test_prefixes);
	return tap_done();
}
