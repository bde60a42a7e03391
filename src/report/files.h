/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files as the log describes them, so that a change can be shown as a diff. Paths are hostile:
 * depth, number and the work of moving and removing are limited, and anything beyond is unknown. */

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
	bool is_wanted; /* it changes later, so its contents are kept */
	uint32_t depth; /* below the root */
	uint32_t live;  /* number of existing files below it */
	char *data;     /* NULL: its contents are not known */
	size_t size;    /* bytes of data */
	bool is_ref;    /* data is the name of contents beside the log */
	size_t name_n;
	char name[];
};

struct files {
	struct file *root;
	size_t n, kept;
	uint64_t work; /* remaining steps for moving and removing */
};

void files_done(struct files *t);
/* Return NULL if nothing is known of the path. The file may be FILE_NONE. */
struct file *files_find(struct files *t, struct str path);
/* Add the path and everything above it. Return NULL if there are too many, it is too deep, or
 * memory runs out. */
struct file *files_add(struct files *t, struct str path);
/* Set the current type and text. text is copied if the file is regular and wanted, and there is
 * room. Otherwise, or if text.p is NULL, the contents are not known. */
void files_set(struct files *t, struct file *f, enum file_type type, bool is_ref, struct str text);
static inline struct str file_text(const struct file *f)
{
	return str_make(f->data, f->size);
}
/* Remove f with everything below it. */
void files_remove(struct files *t, struct file *f);
/* Move everything at `from` to `to`, which is replaced. */
void files_move(struct files *t, struct file *from, struct file *to);
