/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading the configuration file: what config.c and config_*.c share. Each function returns 0 or
 * negative with the place in the file in its message. */

#include "api/sandbox.h"
#include <yaml.h>

struct config {
	cloche_sandbox *sb;
	yaml_document_t doc;
	const char *file;
	struct cloche_err *err;
};

/* What a mapping may have; read() gets the value and whatever config_walk() was given. */
struct config_key {
	const char *name;
	int (*read)(struct config *c, yaml_node_t *value, void *into);
};

/* Sets an error about this place. */
int config_bad(struct config *c, const yaml_node_t *at, const char *what);
yaml_node_t *config_node(struct config *c, int index);
/* The text of a scalar, else the null view; borrowed. */
struct str config_scalar(const yaml_node_t *n);
/* The text of a scalar as a heap string: as it stands, or with !env the variable that it names. */
_warn_unused_ int config_value(struct config *c, const yaml_node_t *n, char **ret);
/* Reads a mapping, which may have these keys and no others. */
_warn_unused_ int config_walk(
	struct config *c, yaml_node_t *map, const struct config_key *keys, size_t n, void *into);
/* Readers: a list of texts (into: char ***), a flag (bool *), a text (char **). */
_warn_unused_ int config_strings(struct config *c, yaml_node_t *value, void *into);
_warn_unused_ int config_bool(struct config *c, yaml_node_t *value, void *into);
_warn_unused_ int config_text(struct config *c, yaml_node_t *value, void *into);
/* The sandbox's secrets, made where there are none yet; NULL on lack of memory. */
cloche_secrets *config_secrets(struct config *c);

/* config_github.c: github_app_credentials */
_warn_unused_ int config_github(struct config *c, yaml_node_t *value, void *into);
