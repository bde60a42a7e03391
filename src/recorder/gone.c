/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen in the turn before and is no longer there. */
#include "recorder/recorder.h"

#include <stdio.h>

/* Whether the names in a directory above could not be looked at in this turn. */
static bool gone_is_out_of_sight(const struct recorder *r, const struct seen *of)
{
	char up[STATE_PATH_MAX + 1];
	char *slash;

	if (r->trees[of->tree].sight.blind == r->turn)
		return true;
	snprintf(up, sizeof(up), "%s", of->path);
	while ((slash = strrchr(up, '/')) && slash > up) {
		const struct seen *s;

		*slash = '\0';
		s = seen_find(r, up);
		if (s && s->sight.blind == r->turn)
			return true;
	}
	return false;
}

/* Whether the entry of the directory above the path covers its removal. */
static bool gone_is_covered(const struct recorder *r, const char *path)
{
	char up[STATE_PATH_MAX + 1];
	char *slash;
	const struct seen *s;

	snprintf(up, sizeof(up), "%s", path);
	slash = strrchr(up, '/');
	if (!slash || slash == up)
		return false;
	*slash = '\0';
	s = seen_find(r, up);
	return s && (s->turn != r->turn || !S_ISDIR(s->mode));
}

int gone_put(struct recorder *r, struct cloche_err *err)
{
	struct seen *s, *next;
	int e = 0;

	if (r->visited == HASH_COUNT(r->seen))
		return 0;
	for (s = r->seen; s && e == 0; s = s->hh.next) {
		if (s->turn == r->turn || s->tree == RECORDER_MAX_TREES)
			continue;
		if (gone_is_out_of_sight(r, s))
			s->turn = r->turn;
		else if (!gone_is_covered(r, s->path))
			e = entry_of_name(
				r, STATE_FS_DELETE, s->path, STR_NULL, STATE_NO_MODE, err);
	}
	HASH_ITER (hh, r->seen, s, next)
		if (e == 0 && s->turn != r->turn)
			seen_remove(r, s);
	return e;
}
