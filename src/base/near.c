/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <limits.h>
#include <string.h>

/* The number of letters that are wrong, missing, superfluous or swapped with the next one. */
static unsigned near_distance(struct str a, const char *b)
{
	enum { MOST = 32 };
	unsigned rows[3][MOST + 1];
	size_t m = strlen(b);

	if (a.n > MOST || m > MOST)
		return UINT_MAX;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = last[j - 1] + (a.p[i - 1] != b[j - 1]);

			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a.p[i - 1] == b[j - 2] && a.p[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[a.n % 3][m];
}

void near_try(struct str name, const char *candidate, struct near *best)
{
	unsigned wrong = near_distance(name, candidate);
	size_t alike = 0;

	while (alike < name.n && candidate[alike] == name.p[alike])
		alike++;
	/* Accept an incomplete name ("--work" for --workdir) or typing errors in one letter of
	 * four. */
	if (wrong > 2 || wrong * 4 > name.n + 2)
		wrong = alike > 2 ? 100 - (unsigned)(alike < 90 ? alike : 90) : UINT_MAX;
	if (!best->name || wrong < best->wrong) {
		best->name = wrong == UINT_MAX ? NULL : candidate;
		best->wrong = wrong;
	}
}
