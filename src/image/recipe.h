/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of an image: the Dockerfile of the user, the files with it, and the layer on top. */

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
	size_t links; /* that were left out of the last directory */
	char *link;   /* the first of them */
};
void recipe_done(struct recipe *r);

_warn_unused_ int recipe_set_dockerfile(struct recipe *r, struct str text, struct cloche_err *err);
_warn_unused_ int recipe_add_file(struct recipe *r, const char *name, struct str data,
	bool executable, struct cloche_err *err);
_warn_unused_ int recipe_add_directory(
	struct recipe *r, const char *directory, const char *skip, struct cloche_err *err);

/* Compute the digest that names the first layer. */
void recipe_hash(const struct recipe *r, char ret[SHA256_HEX_MAX]);

/* Return the script of the entrypoint (static). */
const char *recipe_entrypoint(bool sync_uv);
/* Compute the digest that names the second layer, from the first layer's name and the script. */
void recipe_hash_overlay(const char *repo_tag, const char *entrypoint, char ret[SHA256_HEX_MAX]);
