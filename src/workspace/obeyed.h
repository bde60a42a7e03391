/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the host would run or obey in a granted directory without asking: the table (obeyed.def),
 * and the places in which its rows apply. */

#include "base/str.h"
#include <stdbool.h>

enum obeyed_place {
	OBEYED_NONE,
	OBEYED_ANY, /* every directory */
	OBEYED_GIT, /* a git directory: .git, a bare repository, a submodule's, a worktree's */
	OBEYED_HOOKS,
	OBEYED_VSCODE,
	OBEYED_CLAUDE,
	OBEYED_HG,
	OBEYED_JJ, /* .jj, and repo in it */
	OBEYED_OPENCODE,
	OBEYED_PLUGINS, /* directories in .opencode from which it loads code */
	OBEYED_CARGO,
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

/* Return the row for a name in a place, or NULL if it is not obeyed. Rows of OBEYED_ANY apply in
 * that place only: for an entry of another place, ask for both. */
const struct obeyed *obeyed_find(enum obeyed_place place, struct str name);

/* Which of the names that make a git directory have been seen in a directory. Git recognises a bare
 * repository by its content wherever it is started, so this does as well. Git asks for HEAD and
 * refs, and for objects unless a variable (GIT_OBJECT_DIRECTORY) says where they are. If there is
 * commondir, git asks the directory that it names for all but HEAD, and reads that one's
 * configuration and hooks. */
struct obeyed_signs {
	bool head, objects, refs, commondir;
};
void obeyed_see(struct obeyed_signs *s, struct str name);
bool obeyed_is_git(const struct obeyed_signs *s);
