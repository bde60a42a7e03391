/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized.h"

#include <string.h>

/* No struct of ours will be that large: the size was not set. */
enum { SIZED_MAX = 64 * 1024 };

int sized_take(void *to, size_t n, const void *from, const char *name, struct cloche_err *err)
{
	const unsigned char *bytes = from;
	size_t size;

	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size) || size > SIZED_MAX)
		return err_set(err, E_USAGE, "the size of %s is not set", name);
	for (size_t i = n; i < size; i++)
		if (bytes[i])
			return err_set(err, E_UNSUPPORTED,
				"%s has a member that this version of the library does not know",
				name);
	memcpy(to, from, size < n ? size : n);
	memcpy(to, &n, sizeof(n));
	return 0;
}
