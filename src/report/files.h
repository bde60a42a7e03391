/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the log says that the files were, so that a change can be shown as one. Paths are hostile:
 * depth, number and the work of moving and removing are bounded, and what is beyond is not known.
 */

#include "base/hash.h"
#include "base/str.h"
#include <stdbool.h>

enum {
	FILES_MAX = 500 * 1000,
	FILES_MAX_DEPTH = 256,
	FILES_MAX_KEPT = 64 << 20, /* bytes of contents in all */
};

enum file_type { FILE_NONE, FILE_DIRECTORY, FILE_REGULAR, FILE_LINK };

struct file {
	UT_hash_handle hh;
	struct file *parent, *children;
	enum file_type type;
	bool is_wanted; /* it changes later: its contents are kept */
	uint32_t live;  /* of those below it that are there */
	char *data;     /* NULL: its contents are not known */
	size_t size;    /* bytes of data */
	bool is_ref;    /* data names contents beside the log */
	size_t name_n;
	char name[];
};

struct files {
	struct file *root;
	size_t n, kept;
	uint64_t work; /* steps that moving and removing may still take */
};

void files_done(struct files *t);
/* NULL: nothing is known of it. It may be FILE_NONE. */
struct file *files_find(struct files *t, struct str path);
/* Makes it and what is above it. NULL: there are too many, it is too deep, or no memory. */
struct file *files_add(struct files *t, struct str path);
/* What it is now. text is copied, if the file is wanted and there is room, else not known; of what
 * is no regular file it is nothing, and with text.p NULL neither. */
void files_set(struct files *t, struct file *f, enum file_type type, bool is_ref, struct str text);
static inline struct str file_text(const struct file *f)
{
	return str_make(f->data, f->size);
}
/* With everything below it. */
void files_remove(struct files *t, struct file *f);
/* What is at `from` is at `to`, which is replaced. */
void files_move(struct files *t, struct file *from, struct file *to);
