/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/websocket.h"
#include "base/rand.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

void tls_websocket_key(char ret[TLS_WEBSOCKET_KEY])
{
	unsigned char bytes[16];

	rand_bytes(bytes, sizeof(bytes));
	EVP_EncodeBlock((unsigned char *)ret, bytes, sizeof(bytes));
}

void tls_websocket_accept(struct str key, char ret[TLS_WEBSOCKET_ACCEPT])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char text[64 + sizeof(guid)], digest[SHA_DIGEST_LENGTH];

	key = str_prefix(key, 64);
	memcpy(text, key.p, key.n);
	memcpy(text + key.n, guid, sizeof(guid) - 1);
	SHA1(text, key.n + sizeof(guid) - 1, digest);
	EVP_EncodeBlock((unsigned char *)ret, digest, sizeof(digest));
}
