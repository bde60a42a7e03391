/* SPDX-License-Identifier: Apache-2.0 */
/* For test-graphql-js.py: read documents, each after a line with its decimal length, and write a
 * line for each: "-" if it is refused, else all of its nodes in order, each followed by its parts
 * in parentheses. */
#include "base/buf.h"
#include "filter/graphql.h"

#include <stdio.h>

static const char *const words[] = {
	[GQL_OPERATION] = "operation",
	[GQL_FRAGMENT] = "fragment",
	[GQL_VARIABLE_DEFINITION] = "definition",
	[GQL_FIELD] = "field",
	[GQL_SPREAD] = "spread",
	[GQL_INLINE] = "inline",
	[GQL_DIRECTIVE] = "directive",
	[GQL_ARGUMENT] = "argument",
	[GQL_OBJECT_FIELD] = "member",
	[GQL_VARIABLE] = "variable",
	[GQL_INT] = "int",
	[GQL_FLOAT] = "float",
	[GQL_STRING] = "string",
	[GQL_BOOLEAN] = "boolean",
	[GQL_NULL] = "null",
	[GQL_ENUM] = "enum",
	[GQL_LIST] = "list",
	[GQL_OBJECT] = "object",
};

static void dump(const struct gql_doc *doc, uint32_t parent)
{
	for (uint32_t i = gql_first(doc, parent); i != GQL_NONE; i = gql_next(doc, i)) {
		const struct gql_node *node = &doc->node[i];
		bool value = node->kind >= GQL_INT;

		printf("%s", words[node->kind]);
		if (node->kind == GQL_OPERATION)
			printf("=%s", gql_operation_word(node->op));
		printf(" %.*s ", STR_FMT(node->name));
		for (size_t k = 0; k < node->text.n && !(node->kind == GQL_NULL); k++)
			printf(value ? "%02x" : "%c", (unsigned char)node->text.p[k]);
		printf("(");
		dump(doc, i);
		printf(")");
	}
}

int main(void)
{
	static char text[2 * GQL_SOURCE_MAX];
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		size_t n = strtoul(line, NULL, 10);
		struct gql_doc doc;

		if (n > sizeof(text) || fread(text, 1, n, stdin) != n)
			return 1;
		if (gql_parse(str_make(text, n), &doc) < 0)
			printf("-");
		else
			dump(&doc, GQL_NONE);
		printf("\n");
		gql_doc_done(&doc);
	}
	return feof(stdin) ? 0 : 1;
}
