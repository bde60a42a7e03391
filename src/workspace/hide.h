/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which files of a granted directory a room does not get: those that usually hold secrets, and
 * those that somebody names. */

#include "base/buf.h"
#include <stdbool.h>

enum {
	HIDE_MAX_RULES = 64,
	HIDE_MAX_RULE = 256,       /* bytes of one */
	HIDE_MAX_FILE = 1 << 20,   /* of a file that is read for this */
	HIDE_MAX_INDEX = 64 << 20, /* of an index of git */
};

/* What a rule says: GLOB hides what matches, !GLOB shows it, and "none" all that rules before it
 * and the table of hide.c have hidden. A GLOB without a slash is for a name in any directory, one
 * with a slash for the path from the directory that is mounted; a directory that matches is all
 * that is in it. As in a list of rules for a firewall, the last one that matches holds. */
bool hide_rule_is_good(struct str rule);
bool hide_rule_shows(struct str rule);

enum hidden { HIDDEN_NOT, HIDDEN_BY_DEFAULT, HIDDEN_BY_RULE };

struct hide {
	char *const *rules; /* borrowed strv, or NULL */
	int top;            /* the mounted directory, borrowed */
	struct buf index;   /* of its repository */
	bool has_index, read_index;
};
#define HIDE_INIT(t, r) ((struct hide){.rules = (r), .top = (t), .index = BUF_INIT(HIDE_MAX_INDEX)})
void hide_done(struct hide *h);

/* Whether a file of this name might be hidden: nearly none is, and then its path is not needed. */
bool hide_may_concern(const struct hide *h, const char *name);
/* Judge a regular file by its path from the top. dir, name: where it lies (it is opened through no
 * link). A file that is hidden by default is shown if git has these very contents of it: then the
 * room has them anyway, and nobody who does not know them can have told git so. */
enum hidden hide_judge(struct hide *h, const char *path, int dir, const char *name);
