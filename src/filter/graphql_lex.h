/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tokens of a GraphQL document (specification of October 2021, section 2.1). Internal to this
 * folder. */

#include "filter/graphql.h"

enum gql_token_kind {
	GQL_T_END,
	GQL_T_PUNCTUATOR, /* c; '.' is "..." */
	GQL_T_NAME,
	GQL_T_INT,
	GQL_T_FLOAT,
	GQL_T_STRING, /* text is decoded */
};

struct gql_token {
	enum gql_token_kind kind;
	char c;
	struct str text; /* borrowed from the source or from lexer.text */
	size_t at;
};

struct gql_lexer {
	struct str source;
	size_t at;
	unsigned tokens;
	/* Decoded strings. Allocated for the first one, as large as the source, because decoding
	 * never makes a string longer. */
	char *text;
	size_t text_n;
};

/* Read the next token. Return 0, -EINVAL, -E2BIG or -ENOMEM. */
_warn_unused_ int gql_lex(struct gql_lexer *l, struct gql_token *ret);
