/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Programs that the user has installed outside the system's directories: find what a room needs of
 * the host to run one. This only looks: it executes nothing that it finds, and changes nothing. */

#include "base/err.h"
#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>

/* Whose programs. Everything is borrowed; NULL if there is none. */
struct toolchain_query {
	const char *path; /* the person's PATH */
	const char *home; /* absolute, no links in it */
	const char *cwd;  /* where projects choose their versions */
	char *const *env; /* NAME=VALUE: PYENV_ROOT and the like */
	const char *opt;  /* NULL: "/opt" */
	/* Host paths that have the same path inside, besides the system's; NULL-terminated. */
	char *const *shown;
	/* Directories of the host, without links, that a room may write to (or has);
	 * NULL-terminated. A file there names what its author wants, not what the user wants, so
	 * only run-times in well-known places are shown for it. */
	char *const *writable;
	/* A directory of the host that has another path inside. A file may name either. */
	const char *workspace, *workspace_inside;
};

struct toolchain_mount {
	char *source, *target; /* on the host and inside; mostly the same */
};

/* What is needed for some programs. */
struct toolchain {
	struct toolchain_mount *mounts;
	size_t mounts_n;
	char **dirs;   /* for PATH inside, in this order */
	char *program; /* path inside of the last program that was asked for */
	char **vars;   /* NAME=VALUE */
	char **notes;  /* a line for each mount */
};

#define TOOLCHAIN_INIT ((struct toolchain){0})

/* Add what a program needs. name: an absolute path, or a name that is looked for on the PATH.
 * Return 0 (also if nothing has to be added, because a room finds it: then program is NULL);
 * 1 if there is no such program; E_NOT_FOUND if it needs something that is not there;
 * E_DENIED if it lies among credentials, cannot be shown without a whole home, or is named by a
 * file that a room may have written. */
_warn_unused_ int toolchain_add(const struct toolchain_query *q, const char *name,
	struct toolchain *ret, struct cloche_err *err);

/* Add only what a file needs to be run (its interpreter), for a file that is shown already. */
_warn_unused_ int toolchain_add_needs(const struct toolchain_query *q, const char *file,
	struct toolchain *ret, struct cloche_err *err);

void toolchain_done(struct toolchain *t);

/* --- parts, here for each other and for tests --- */

/* The first executable of that name on the PATH; directories within `without` (NULL: none) are left
 * out. Heap; NULL if there is none. */
char *toolchain_find(const struct toolchain_query *q, const char *name, const char *without);

/* What a file says that it needs. */
struct tool_needs {
	char *interpreter; /* absolute path, or a name that env looks for; NULL: nothing */
	bool by_name;
	bool script; /* else an ELF file's loader */
};
/* Read the beginning of a program. 0, or -errno. */
_warn_unused_ int tool_read_needs(const char *file, struct tool_needs *ret);

/* If `path` is the stand-in ("shim") of a version manager (pyenv, nodenv, rbenv, goenv, asdf, mise,
 * volta, rustup), *ret is the program that it would start (heap). Return 0; 1 if path is not a
 * stand-in; E_NOT_FOUND if it is, and the version that it wants is not installed. */
_warn_unused_ int tool_home_resolve(
	const struct toolchain_query *q, const char *path, char **ret, struct cloche_err *err);

/* If `root` is the directory of a version manager that looks for it in the home (pyenv and those
 * made after it), which is another one inside, add the variable that names it. 0 or -ENOMEM. */
_warn_unused_ int tool_home_add_variable(
	const struct toolchain_query *q, const char *root, char ***vars);

/* The part of path that is dir and `levels` more components. Heap; NULL if path is not below that.
 */
char *tool_cut_below(const char *path, const char *dir, unsigned levels);

/* The host's path of what a file names by its path inside. Heap. */
char *tool_path_outside(const struct toolchain_query *q, const char *path);

/* $VARIABLE, or that place below the home. Heap; NULL if there is neither. */
char *tool_home_dir(const struct toolchain_query *q, const char *variable, const char *below);
/* Whether it is a regular file that anybody may execute. */
bool tool_is_program(const char *path);
/* Whether the program lies in a directory that is on a room's PATH anyway. */
bool tool_is_on_path(struct str path);
