/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"
#include "tap.h"

#include <stdio.h>

static void check_digest(struct str text, const char *want)
{
	uint8_t digest[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1];

	sha1_text(text, digest);
	for (unsigned i = 0; i < SHA1_BYTES; i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
	check_z(hex, want);
}

/* FIPS 180-4's examples, and lengths at the borders of the padding (by coreutils' sha1sum). */
static void test_known_digests(void)
{
	static char a[1000];

	memset(a, 'a', sizeof(a));
	check_digest(STR(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	check_digest(STR("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
	check_digest(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		"84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	check_digest(str_make(a, 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
	check_digest(str_make(a, 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
	check_digest(str_make(a, 63), "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
	check_digest(str_make(a, 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
	check_digest(str_make(a, 65), "11655326c708d70319be2610e8a57d9a5b959d3b");
	check_digest(str_make(a, 119), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
	check_digest(str_make(a, 120), "f34c1488385346a55709ba056ddd08280dd4c6d6");
	check_digest(str_make(a, 1000), "291e9a6c66994949b57ba5e650361e98fc36b1ba");
}

int main(void)
{
	run_test(test_known_digests);
	return tap_done();
}
