/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What of a granted directory the host would run or obey without asking: the table (obeyed.def),
 * and the places in which its rows hold. */

#include "base/str.h"
#include <stdbool.h>

enum obeyed_place {
	OBEYED_NONE,
	OBEYED_ANY, /* every directory */
	OBEYED_GIT, /* a git directory: .git, a bare repository, a submodule's, a worktree's */
	OBEYED_HOOKS,
	OBEYED_VSCODE,
	OBEYED_CLAUDE,
};

enum obeyed_judge { OBEYED_ALWAYS, OBEYED_EXECUTABLE, OBEYED_COMMANDS, OBEYED_REDIRECT };
enum obeyed_protect { OBEYED_NOTHING, OBEYED_READONLY, OBEYED_PINNED };
enum obeyed_end { OBEYED_NAMED, OBEYED_ASIDE };

struct obeyed {
	enum obeyed_place place;
	struct str pattern;
	enum obeyed_place below;
	enum obeyed_judge judge;
	enum obeyed_protect protect;
	enum obeyed_end end;
	const char *what;
};

/* The row for a name in a place; NULL: it is nothing that is obeyed. Rows of OBEYED_ANY hold in
 * that place alone: for what is in a git directory too, ask twice. */
const struct obeyed *obeyed_find(enum obeyed_place place, struct str name);

/* Which names that make a git directory have been seen in one. Git finds a bare repository by
 * itself wherever it is started, so a directory is one by its content. */
struct obeyed_signs {
	bool head, objects, refs, commondir;
};
void obeyed_see(struct obeyed_signs *s, struct str name);
bool obeyed_is_git(const struct obeyed_signs *s);
