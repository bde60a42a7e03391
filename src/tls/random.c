/* SPDX-License-Identifier: Apache-2.0 */
/* The method table is the deprecated way in OpenSSL 3; a provider, the new way, would cost the time
 * that this is to save. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tls/random.h"
#include "base/rand.h"

#include <openssl/rand.h>

static int bytes(unsigned char *p, int n)
{
	if (n < 0)
		return 0;
	rand_bytes(p, (size_t)n); /* ends the process if the kernel cannot */
	return 1;
}

static int status(void)
{
	return 1;
}

void tls_use_kernel_random(void)
{
	static const RAND_METHOD method = {.bytes = bytes, .pseudorand = bytes, .status = status};

	(void)RAND_set_rand_method(&method);
}
