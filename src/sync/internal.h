/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by push and pull. */

#include "base/fd.h"
#include "sync/decide.h"
#include "sync/sync.h"

#include <errno.h>
#include <sys/stat.h>

struct sync {
	cloche_files *f;
	int top; /* borrowed: the directory */
	const struct sync_options *o;
	struct sync_state *state;
	struct sync_report *report;
	size_t max_entries;
	struct ignore_rules *rules, *excluded; /* of the top, and of .git/info/exclude */
	size_t rules_n;                        /* in all files */
	size_t listed;                         /* names that are there, whatever they are */
	struct sync_node **nodes;              /* all, sorted, once both sides were looked at */
	size_t n;
	bool asked_names, needs_names; /* whether a file on its way has to have a name */
	int dir;                       /* the last one that here_open_parent() found */
	char *dir_path;
};

/* --- common.c --- */
void sync_begin(struct sync *s, cloche_files *f, int dir, const struct sync_options *o,
	struct sync_state *state, struct sync_report *report);
void sync_end(struct sync *s);
/* Sort the nodes of both sides; what is below one that is blind is blind, too. */
_warn_unused_ int sync_sort(struct sync *s, struct cloche_err *err);
/* Something went on. */
void sync_pulse(struct sync *s);
void sync_tell(struct sync *s, enum sync_event event, const char *path, const char *other);
/* Whether the path lies in this directory. */
bool sync_is_below(const char *path, const char *directory);
/* The end of the part of s->nodes that lies in the directory s->nodes[i]. */
size_t sync_end_of(const struct sync *s, size_t i);
/* The directory of a path: the part before its last slash, or "". */
struct str sync_parent(const char *path);
/* The last name of a path. */
const char *sync_name(const char *path);
/* Whether the rules of the .gitignore files that are here exclude it. */
bool sync_is_ignored(const struct sync *s, const char *path, bool is_directory);
/* Whether it is one of our temporary files. */
bool sync_is_temporary(const char *name);
/* Whether a file that had this time may yet change without a change of its time. */
bool sync_is_recent(struct sync_time t);
/* The name of a path for the worker. */
void sync_there_path(const struct sync *s, const char *path, char ret[PATH_MAX + 1]);
/* Both have the same contents now, of which n->digest is the digest. */
void sync_alike(struct sync_node *n);
/* The worker said no, and can go on: the failure of one operation, not of the session. */
bool sync_can_go_on(const struct sync *s, int r);

/* --- here.c --- */
/* Look at everything here. */
_warn_unused_ int here_scan(struct sync *s, struct cloche_err *err);
/* What became here of what was before. Reads a file if its time alone says that it changed. What
 * cannot be read is told, and blind. */
_warn_unused_ int here_side(struct sync *s, struct sync_node *n, enum sync_side *ret);
/* Get the digest of the file or link that is here. Return 0, 1 if it cannot be read (told, and
 * blind), or -errno. */
_warn_unused_ int here_digest(struct sync *s, struct sync_node *n);
/* Open the directory of a path, through directories only (INV-NAMED-ONCE). Return it, borrowed
 * until the next call, with the last name; or -errno. */
_warn_unused_ int here_open_parent(struct sync *s, const char *path, const char **ret_name);
void here_forget_parent(struct sync *s);
/* Whether the name still has what was found by the scan. */
bool here_is_still(int dir, const char *name, const struct sync_facts *facts);
struct sync_facts here_facts(const struct stat *st);

/* --- there.c --- */
/* Look at everything there. */
_warn_unused_ int there_scan(struct sync *s, struct cloche_err *err);
/* What became there of what was before. unsure: what may have changed has changed, as a pull can
 * look into it. */
enum sync_side there_side(const struct sync_node *n, bool unsure);
/* Remove all that is there. only_look: fail if there is anything. */
_warn_unused_ int there_clear(struct sync *s, bool only_look, struct cloche_err *err);

/* --- take.c, take_place.c, take_archive.c --- */
/* Have here what is there, aside if something of the person's is in the way. */
_warn_unused_ int take_node(struct sync *s, struct sync_node *n, struct cloche_err *err);
/* The same for a directory. */
_warn_unused_ int take_directory(struct sync *s, struct sync_node *n, struct cloche_err *err);
/* Take the files of a directory that is new by one archive, as far as that goes. */
_warn_unused_ int take_archive(struct sync *s, size_t at, size_t end, struct cloche_err *err);
/* Delete it here, unless it is not what it was. */
_warn_unused_ int take_deletion(struct sync *s, struct sync_node *n, struct cloche_err *err);
/* Give directories that were made, opened or changed their modes. */
_warn_unused_ int take_settle(struct sync *s, struct cloche_err *err);
