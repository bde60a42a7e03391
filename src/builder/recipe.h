/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an image is made of: the Dockerfile of the user, the files beside it, and what goes on top.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include <stdbool.h>

struct recipe_file {
	char *name;
	void *data;
	size_t size;
	bool executable;
};

struct recipe {
	char *dockerfile; /* NULL: none */
	size_t dockerfile_n;
	struct recipe_file *files; /* in the order of their names */
	size_t n, bytes;
};
void recipe_done(struct recipe *r);

_warn_unused_ int recipe_set_dockerfile(struct recipe *r, struct str text, struct cloche_err *err);
_warn_unused_ int recipe_add_file(struct recipe *r, const char *name, struct str data,
	bool executable, struct cloche_err *err);
_warn_unused_ int recipe_add_directory(
	struct recipe *r, const char *directory, const char *skip, struct cloche_err *err);

/* The digest that names the first layer. */
void recipe_hash(const struct recipe *r, char ret[SHA256_HEX_MAX]);

/* The script that is the entrypoint, static. */
const char *recipe_entrypoint(bool sync_uv);
/* The digest that names the second layer: of the first one's name and the script. */
void recipe_hash_overlay(const char *repo_tag, const char *entrypoint, char ret[SHA256_HEX_MAX]);

/* When an image was made, in seconds since 1970: "2026-11-23T16:45:00.123Z" (also with a zone as
 * "+01:00") or, as Go prints it, "2026-11-23 16:45:00.123 +0100 CET". False: it says neither. */
bool recipe_parse_created(struct str text, int64_t *ret);
