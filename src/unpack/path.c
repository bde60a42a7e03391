/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "unpack/unpack.h"

#include <limits.h>

int unpack_path(const char *path, char *ret, struct cloche_err *err)
{
	struct str rest = str_from(path);
	size_t n = 0, depth = 0;

	if (path[0] == '/')
		return err_set(err, E_CORRUPT, "%.200s: the path is absolute", path);
	while (rest.n) {
		struct str part = str_prefix(rest, str_chr(rest, '/'));

		rest = str_from_index(rest, part.n + 1);
		if (part.n == 0 || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR("..")))
			return err_set(err, E_CORRUPT, "%.200s: the path leads up", path);
		if (++depth > UNPACK_DEPTH_MAX || part.n > NAME_MAX || n + part.n + 2 > PATH_MAX)
			return err_set(err, E_CORRUPT, "%.200s...: the path is too long", path);
		if (n > 0)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = '\0';
	return 0;
}
