/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* GraphQL documents that can be executed (specification of October 2021, section 2 and appendix B):
 * operations and fragments. Type definitions are refused, and so is anything that two servers could
 * read differently.
 *
 * A document is one array of nodes in the order of the source, and each node is followed by its
 * parts: the parts of node i are the nodes from i + 1 up to node[i].end. A simple loop visits all
 * nodes; gql_first and gql_next visit the direct parts of one. */

#include "base/macro.h"
#include "base/str.h"

#define GQL_SOURCE_MAX (1U << 20) /* bytes of a document */
#define GQL_TOKENS_MAX 100000
#define GQL_DEPTH_MAX 100 /* of nested selections, values and types together */

enum gql_kind {
	/* name: the operation's, may be empty; op says which. Parts: variable definitions,
	 * directives, selections. */
	GQL_OPERATION,
	GQL_FRAGMENT, /* name; text: the type that it is on. Parts: directives, selections */
	GQL_VARIABLE_DEFINITION, /* name without '$'. Parts: default value, if any; directives */
	/* Selections. */
	GQL_FIELD,  /* name: the real one; text: the alias or empty. Parts: arguments, directives,
		       selections */
	GQL_SPREAD, /* ...name. Parts: directives */
	GQL_INLINE, /* text: the type that it is on, or empty. Parts: directives, selections */
	GQL_DIRECTIVE,    /* name without '@'. Parts: arguments */
	GQL_ARGUMENT,     /* name. Part: its value */
	GQL_OBJECT_FIELD, /* name. Part: its value */
	/* Values. */
	GQL_VARIABLE, /* name without '$' */
	GQL_INT,      /* text: as written */
	GQL_FLOAT,
	GQL_STRING,  /* text: its value, escapes decoded, a block string's indentation removed */
	GQL_BOOLEAN, /* text: true, false */
	GQL_NULL,
	GQL_ENUM,   /* text: as written */
	GQL_LIST,   /* Parts: values */
	GQL_OBJECT, /* Parts: object fields */
};

enum gql_operation { GQL_QUERY, GQL_MUTATION, GQL_SUBSCRIPTION };

#define GQL_NONE UINT32_MAX

struct gql_node {
	enum gql_kind kind;
	enum gql_operation op;
	uint32_t parent; /* GQL_NONE: the document itself */
	uint32_t end;
	struct str name, text; /* borrowed from the source, or from the document */
};

struct gql_doc {
	struct gql_node *node;
	uint32_t n, cap;
	char *text; /* decoded strings */
	size_t text_n;
};

/* Read source, which must live as long as ret is used. Return 0; -EINVAL if it is not a document
 * that we accept, -E2BIG over a limit, -ENOMEM. ret is empty on failure; give it to gql_doc_done in
 * any case. */
_warn_unused_ int gql_parse(struct str source, struct gql_doc *ret);
void gql_doc_done(struct gql_doc *doc);

/* Return the first part of node i, and the next part of the same node after part j, or GQL_NONE if
 * there is none. gql_first(doc, GQL_NONE) is the first definition. */
static inline uint32_t gql_first(const struct gql_doc *doc, uint32_t i)
{
	uint32_t first = i == GQL_NONE ? 0 : i + 1;
	uint32_t end = i == GQL_NONE ? doc->n : doc->node[i].end;

	return first < end ? first : GQL_NONE;
}
static inline uint32_t gql_next(const struct gql_doc *doc, uint32_t j)
{
	uint32_t parent = doc->node[j].parent, next = doc->node[j].end;
	uint32_t end = parent == GQL_NONE ? doc->n : doc->node[parent].end;

	return next < end ? next : GQL_NONE;
}

/* "query", "mutation", "subscription"; never NULL. */
const char *gql_operation_word(enum gql_operation op);
