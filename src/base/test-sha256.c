/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "tap.h"

#include <stdio.h>

static void check_digest(struct str data, const char *want)
{
	char hex[SHA256_HEX_MAX];

	/* In one go, and in pieces of every size that has a border of its own. */
	for (size_t piece = 1; piece <= 130; piece += piece == 1 ? 61 : 1) {
		struct sha256 h;

		sha256_init(&h);
		for (size_t at = 0; at < data.n; at += piece)
			sha256_add(&h, str_prefix(str_from_index(data, at), piece));
		sha256_hex(&h, hex);
		check_z(hex, want);
	}
}

/* FIPS 180-4's examples, and lengths at the borders of the padding (by coreutils' sha256sum). */
static void test_known_digests(void)
{
	static char a[1000];

	memset(a, 'a', sizeof(a));
	check_digest(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_digest(
		STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_digest(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_digest(str_make(a, 55),
		"9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
	check_digest(str_make(a, 56),
		"b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
	check_digest(str_make(a, 63),
		"7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
	check_digest(str_make(a, 64),
		"ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
	check_digest(str_make(a, 65),
		"635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
	check_digest(str_make(a, 119),
		"31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
	check_digest(str_make(a, 120),
		"2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c");
	check_digest(str_make(a, 128),
		"6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e");
	check_digest(str_make(a, 1000),
		"41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

static void test_frames_are_told_apart(void)
{
	char one[SHA256_HEX_MAX], two[SHA256_HEX_MAX];
	struct sha256 h;

	sha256_init(&h);
	sha256_add_framed(&h, STR("ab"));
	sha256_add_framed(&h, STR("c"));
	sha256_hex(&h, one);
	sha256_init(&h);
	sha256_add_framed(&h, STR("a"));
	sha256_add_framed(&h, STR("bc"));
	sha256_hex(&h, two);
	check(strcmp(one, two) != 0);
}

static void test_both_ways_agree(void)
{
	static uint8_t blocks[100 * SHA256_BLOCK];
	struct sha256 h, plain;
	uint8_t bytes[SHA256_BYTES];
	char hex[SHA256_HEX_MAX];

	for (size_t i = 0; i < sizeof(blocks); i++)
		blocks[i] = (uint8_t)(i * i * 37 + i / 251);
	sha256_init(&h);
	sha256_init(&plain);
	sha256_add(&h, str_make(blocks, sizeof(blocks)));
	sha256_blocks_plain(plain.state, blocks, sizeof(blocks) / SHA256_BLOCK);
	check(memcmp(h.state, plain.state, sizeof(h.state)) == 0);
	plain.length = h.length;
	sha256_bytes(&h, bytes);
	sha256_hex(&plain, hex);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		char two[3];

		snprintf(two, sizeof(two), "%02x", bytes[i]);
		check(memcmp(two, hex + 2 * i, 2) == 0);
	}
}

/* RFC 4231 has no key of 32 bytes; these are of Python's hmac. */
static void test_hmac(void)
{
	static const uint8_t want[] = {0x4d, 0x9d, 0x65, 0x3f, 0xcd, 0x05, 0xf9, 0x1c, 0xd8, 0x58,
		0xa2, 0x0d, 0x50, 0xc7, 0x4b, 0x60, 0x4f, 0xe3, 0x8f, 0x2c, 0xac, 0x49, 0xd9, 0xb0,
		0xa7, 0x09, 0x95, 0x84, 0xcf, 0x4f, 0xb3, 0x5a};
	uint8_t key[SHA256_BYTES], got[SHA256_BYTES];
	struct sha256_hmac h;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i + 1);
	sha256_hmac_init(&h, key);
	sha256_add(&h.inner, STR("what do ya want "));
	sha256_add(&h.inner, STR("for nothing?"));
	sha256_hmac_bytes(&h, got);
	check(memcmp(got, want, sizeof(want)) == 0);
}

int main(void)
{
	run_test(test_hmac);
	run_test(test_known_digests);
	run_test(test_frames_are_told_apart);
	run_test(test_both_ways_agree);
	return tap_done();
}
