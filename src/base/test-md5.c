/* SPDX-License-Identifier: Apache-2.0 */
#include "base/md5.h"
#include "tap.h"

static void check_digest(struct str data, const char *want)
{
	char hex[MD5_HEX_MAX];

	md5_hex(data, hex);
	check_z(hex, want);
}

/* RFC 1321 section A.5, and lengths at the borders of the padding (by coreutils' md5sum). */
static void test_known_digests(void)
{
	static char a[1000];

	memset(a, 'a', sizeof(a));
	check_digest(STR(""), "d41d8cd98f00b204e9800998ecf8427e");
	check_digest(STR("abc"), "900150983cd24fb0d6963f7d28e17f72");
	check_digest(STR("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
	check_digest(str_make(a, 55), "ef1772b6dff9a122358552954ad0df65");
	check_digest(str_make(a, 56), "3b0c8ac703f828b04c6c197006d17218");
	check_digest(str_make(a, 63), "b06521f39153d618550606be297466d5");
	check_digest(str_make(a, 64), "014842d480b571495a4a0363793f7367");
	check_digest(str_make(a, 65), "c743a45e0d2e6a95cb859adae0248435");
	check_digest(str_make(a, 119), "8a7bd0732ed6a28ce75f6dabc90e1613");
	check_digest(str_make(a, 120), "5f61c0ccad4cac44c75ff505e1f1e537");
	check_digest(str_make(a, 128), "e510683b3f5ffe4093d021808bc6ff70");
	check_digest(str_make(a, 1000), "cabe45dcc9ae5b66ba86600cca6b8ba8");
}

int main(void)
{
	run_test(test_known_digests);
	return tap_done();
}
