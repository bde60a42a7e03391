/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* OpenSSL's queue of errors. */

#include <openssl/err.h>

/* Call this before each operation on an SSL: SSL_get_error(3) is right only if the queue was empty,
 * which it nearly always is. Clearing the queue goes through all its memory, looking does not. */
static inline void errors_clear(void)
{
	if (ERR_peek_error())
		ERR_clear_error();
}
