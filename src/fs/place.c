/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/place.h"

#include <errno.h>
#include <stdio.h>

int places_find(const struct place *places, size_t n, struct str path, char **ret)
{
	const char *source = NULL;
	size_t best = 0;
	char *found;

	for (size_t i = 0; i < n; i++) {
		struct str target = str_from(places[i].target);

		if (target.n >= best && str_starts(path, target) &&
			(path.n == target.n || path.p[target.n] == '/')) {
			best = target.n;
			source = places[i].source;
		}
	}
	if (!source)
		return 0;
	path = str_from_index(path, best);
	if (asprintf(&found, "%s%.*s", source, STR_FMT(path)) < 0)
		return -ENOMEM;
	*ret = found;
	return 1;
}
