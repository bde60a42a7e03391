/* SPDX-License-Identifier: Apache-2.0 */
/* The files as they were last looked at, or as the log says that they were changed from outside
 * since. */
#include "recorder/recorder.h"

#include <utlist.h>

struct seen *seen_find(const struct recorder *r, const char *path)
{
	struct seen *s = NULL;

	HASH_FIND_STR(r->seen, path, s);
	return s;
}

struct seen *seen_add(struct recorder *r, const char *path)
{
	struct seen *s = NULL;
	size_t n = strlen(path);

	if (HASH_COUNT(r->seen) < RECORDER_MAX_SEEN)
		s = calloc(1, sizeof(*s) + n + 1);
	if (!s) {
		r->overfull = true;
		return NULL;
	}
	memcpy(s->path, path, n);
	HASH_ADD_STR(r->seen, path, s);
	if (!s->hh.tbl) {
		free(s);
		r->overfull = true;
		return NULL;
	}
	return s;
}

static void unlist(struct seen *s)
{
	if (s->of)
		DL_DELETE(s->of->first, s);
	s->of = NULL;
}

void seen_list(struct dirnames *in, struct seen *s)
{
	if (s->of == in)
		return;
	unlist(s);
	DL_APPEND(in->first, s);
	s->of = in;
}

void seen_remove(struct recorder *r, struct seen *s)
{
	unlist(s);
	while (s->names.first)
		unlist(s->names.first);
	HASH_DEL(r->seen, s);
	outside_forget_appended(s);
	free(s);
}
