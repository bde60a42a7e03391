/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: recursive descent with one token of lookahead; the functions follow appendix
 * B.2 and B.3. A node is appended at its first token and closed (its `end` is set) after its last
 * one. Depth is counted where the grammar recurses: selection sets, values, types.
 *
 * The first failure is kept. From then on the token is that of the end, which continues nothing, so
 * every function returns without reading more. */
#include "filter/graphql.h"
#include "filter/graphql_lex.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

enum { NODES_FIRST = 64 };

struct parser {
	struct gql_lexer lexer;
	struct gql_token now;
	struct gql_doc *doc;
	unsigned depth;
	int r; /* the first failure, or 0 */
};

static void parse_selection_set(struct parser *p, uint32_t parent);
static void parse_value(struct parser *p, uint32_t parent, bool constant);

static void parser_fail(struct parser *p, int r)
{
	if (p->r == 0)
		p->r = r;
	p->now = (struct gql_token){.kind = GQL_T_END};
}

static void parser_advance(struct parser *p)
{
	int r = p->r < 0 ? p->r : gql_lex(&p->lexer, &p->now);

	if (r < 0)
		parser_fail(p, r);
}

static bool parser_is_at(const struct parser *p, char c)
{
	return p->now.kind == GQL_T_PUNCTUATOR && p->now.c == c;
}

static bool parser_is_at_word(const struct parser *p, struct str word)
{
	return p->now.kind == GQL_T_NAME && str_eq(p->now.text, word);
}

/* Return whether a list goes on that ends with c. */
static bool parser_is_before(const struct parser *p, char c)
{
	return p->r == 0 && !parser_is_at(p, c);
}

static void parser_expect(struct parser *p, char c)
{
	if (parser_is_at(p, c))
		parser_advance(p);
	else
		parser_fail(p, -EINVAL);
}

static void parser_enter(struct parser *p)
{
	if (p->depth++ == GQL_DEPTH_MAX)
		parser_fail(p, -E2BIG);
}

/* Return the text of the token, and advance. */
static struct str parser_take(struct parser *p)
{
	struct str text = p->now.text;

	parser_advance(p);
	return text;
}

static struct str parse_name(struct parser *p)
{
	if (p->now.kind != GQL_T_NAME)
		parser_fail(p, -EINVAL);
	return parser_take(p);
}

static struct gql_node *parser_node(struct parser *p, uint32_t node)
{
	return &p->doc->node[node];
}

/* Return the index of a new node. After a failure this is 0, which there always is memory for. */
static uint32_t node_open(struct parser *p, enum gql_kind kind, uint32_t parent)
{
	struct gql_doc *doc = p->doc;

	if (p->r == 0 && doc->n == doc->cap) {
		struct gql_node *grown =
			reallocarray(doc->node, (size_t)doc->cap * 2, sizeof(*grown));

		if (grown) {
			doc->node = grown;
			doc->cap *= 2;
		} else {
			parser_fail(p, -ENOMEM);
		}
	}
	if (p->r < 0)
		return 0;
	doc->node[doc->n] = (struct gql_node){.kind = kind, .parent = parent, .end = doc->n + 1};
	return doc->n++;
}

static void node_close(struct parser *p, uint32_t node)
{
	parser_node(p, node)->end = p->doc->n;
}

/* name ':' value, as an argument (2.6) or a field of an input object (2.9.8). */
static void parse_named_value(struct parser *p, enum gql_kind kind, uint32_t parent, bool constant)
{
	uint32_t node = node_open(p, kind, parent);

	parser_node(p, node)->name = parse_name(p);
	parser_expect(p, ':');
	parse_value(p, node, constant);
	node_close(p, node);
}

static enum gql_kind kind_of_word(struct str word)
{
	if (str_eq(word, STR("true")) || str_eq(word, STR("false")))
		return GQL_BOOLEAN;
	return str_eq(word, STR("null")) ? GQL_NULL : GQL_ENUM;
}

/* Return the kind of value that the token begins, or GQL_OPERATION, which is not a value. */
static enum gql_kind kind_of_value(const struct parser *p)
{
	switch (p->now.kind) {
	case GQL_T_INT:
		return GQL_INT;
	case GQL_T_FLOAT:
		return GQL_FLOAT;
	case GQL_T_STRING:
		return GQL_STRING;
	case GQL_T_NAME:
		return kind_of_word(p->now.text);
	case GQL_T_PUNCTUATOR:
		return p->now.c == '$'   ? GQL_VARIABLE
		       : p->now.c == '[' ? GQL_LIST
		       : p->now.c == '{' ? GQL_OBJECT
					 : GQL_OPERATION;
	case GQL_T_END:
	default:
		return GQL_OPERATION;
	}
}

/* 2.9. */
static void parse_value(struct parser *p, uint32_t parent, bool constant)
{
	enum gql_kind kind = kind_of_value(p);
	uint32_t node;

	if (kind == GQL_OPERATION || (kind == GQL_VARIABLE && constant)) {
		parser_fail(p, -EINVAL);
		return;
	}
	parser_enter(p);
	node = node_open(p, kind, parent);
	parser_node(p, node)->text = parser_take(p);
	if (kind == GQL_VARIABLE) {
		parser_node(p, node)->name = parse_name(p);
	} else if (kind == GQL_LIST) {
		while (parser_is_before(p, ']'))
			parse_value(p, node, constant);
		parser_advance(p);
	} else if (kind == GQL_OBJECT) {
		while (parser_is_before(p, '}'))
			parse_named_value(p, GQL_OBJECT_FIELD, node, constant);
		parser_advance(p);
	}
	node_close(p, node);
	p->depth--;
}

/* Optional; not empty if it is there. */
static void parse_arguments(struct parser *p, uint32_t parent, bool constant)
{
	if (!parser_is_at(p, '('))
		return;
	parser_advance(p);
	do
		parse_named_value(p, GQL_ARGUMENT, parent, constant);
	while (parser_is_before(p, ')'));
	parser_advance(p);
}

/* 2.12; none or more. */
static void parse_directives(struct parser *p, uint32_t parent, bool constant)
{
	while (parser_is_at(p, '@')) {
		uint32_t node = node_open(p, GQL_DIRECTIVE, parent);

		parser_advance(p);
		parser_node(p, node)->name = parse_name(p);
		parse_arguments(p, node, constant);
		node_close(p, node);
	}
}

/* 2.11; the type itself is not used. */
static void parse_type(struct parser *p)
{
	if (parser_is_at(p, '[')) {
		parser_enter(p);
		parser_advance(p);
		parse_type(p);
		parser_expect(p, ']');
		p->depth--;
	} else {
		(void)parse_name(p);
	}
	if (parser_is_at(p, '!'))
		parser_advance(p);
}

/* 2.10: $name: Type = value @directives */
static void parse_variable_definition(struct parser *p, uint32_t parent)
{
	uint32_t node = node_open(p, GQL_VARIABLE_DEFINITION, parent);

	parser_expect(p, '$');
	parser_node(p, node)->name = parse_name(p);
	parser_expect(p, ':');
	parse_type(p);
	if (parser_is_at(p, '=')) {
		parser_advance(p);
		parse_value(p, node, true);
	}
	parse_directives(p, node, true);
	node_close(p, node);
}

static void parse_variable_definitions(struct parser *p, uint32_t parent)
{
	if (!parser_is_at(p, '('))
		return;
	parser_advance(p);
	do
		parse_variable_definition(p, parent);
	while (parser_is_before(p, ')'));
	parser_advance(p);
}

/* 2.5: [alias:] name [(arguments)] [@directives] [{selections}] */
static void parse_field(struct parser *p, uint32_t node)
{
	parser_node(p, node)->name = parse_name(p);
	if (parser_is_at(p, ':')) {
		parser_node(p, node)->text = parser_node(p, node)->name;
		parser_advance(p);
		parser_node(p, node)->name = parse_name(p);
	}
	parse_arguments(p, node, false);
	parse_directives(p, node, false);
	if (parser_is_at(p, '{'))
		parse_selection_set(p, node);
}

/* 2.8, after the dots: a fragment's name, or [on Type] [@directives] {selections} */
static void parse_spread(struct parser *p, uint32_t node)
{
	if (p->now.kind == GQL_T_NAME && !parser_is_at_word(p, STR("on"))) {
		parser_node(p, node)->name = parse_name(p);
		parse_directives(p, node, false);
		return;
	}
	parser_node(p, node)->kind = GQL_INLINE;
	if (parser_is_at_word(p, STR("on"))) {
		parser_advance(p);
		parser_node(p, node)->text = parse_name(p);
	}
	parse_directives(p, node, false);
	parse_selection_set(p, node);
}

static void parse_selection(struct parser *p, uint32_t parent)
{
	bool dots = parser_is_at(p, '.');
	uint32_t node = node_open(p, dots ? GQL_SPREAD : GQL_FIELD, parent);

	if (dots) {
		parser_advance(p);
		parse_spread(p, node);
	} else {
		parse_field(p, node);
	}
	node_close(p, node);
}

/* 2.4; never empty. */
static void parse_selection_set(struct parser *p, uint32_t parent)
{
	parser_enter(p);
	parser_expect(p, '{');
	do
		parse_selection(p, parent);
	while (parser_is_before(p, '}'));
	parser_advance(p);
	p->depth--;
}

/* 2.3, after its keyword, if it has one. */
static void parse_operation(struct parser *p, uint32_t node)
{
	if (p->now.kind == GQL_T_NAME)
		parser_node(p, node)->name = parse_name(p);
	parse_variable_definitions(p, node);
	parse_directives(p, node, false);
	parse_selection_set(p, node);
}

/* 2.8: fragment Name on Type @directives {selections} */
static void parse_fragment(struct parser *p, uint32_t node)
{
	if (parser_is_at_word(p, STR("on"))) /* it cannot be named like this */
		parser_fail(p, -EINVAL);
	parser_node(p, node)->name = parse_name(p);
	if (!parser_is_at_word(p, STR("on")))
		parser_fail(p, -EINVAL);
	parser_advance(p);
	parser_node(p, node)->text = parse_name(p);
	parse_directives(p, node, false);
	parse_selection_set(p, node);
}

static const char *const operation_words[] = {
	[GQL_QUERY] = "query", [GQL_MUTATION] = "mutation", [GQL_SUBSCRIPTION] = "subscription"};

static void parse_definition(struct parser *p)
{
	uint32_t node = node_open(p, GQL_OPERATION, GQL_NONE);
	size_t op = 0;

	while (op < ARRAY_SIZE(operation_words) &&
		!parser_is_at_word(p, str_from(operation_words[op])))
		op++;
	if (parser_is_at(p, '{')) {
		parse_selection_set(p, node);
	} else if (op < ARRAY_SIZE(operation_words)) {
		parser_node(p, node)->op = (enum gql_operation)op;
		parser_advance(p);
		parse_operation(p, node);
	} else if (parser_is_at_word(p, STR("fragment"))) {
		parser_node(p, node)->kind = GQL_FRAGMENT;
		parser_advance(p);
		parse_fragment(p, node);
	} else {
		parser_fail(p, -EINVAL);
	}
	node_close(p, node);
}

/* 2.1.1; bytes that are not UTF-8 are refused, too. */
static bool has_valid_characters(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t' && s.p[i] != '\n' &&
			s.p[i] != '\r')
			return false;
	return utf8_is_valid(s);
}

int gql_parse(struct str source, struct gql_doc *ret)
{
	struct parser p = {.lexer = {.source = source}, .doc = ret};

	*ret = (struct gql_doc){0};
	if (source.n > GQL_SOURCE_MAX)
		return -E2BIG;
	if (!has_valid_characters(source))
		return -EINVAL;
	ret->node = calloc(NODES_FIRST, sizeof(*ret->node));
	if (!ret->node)
		return -ENOMEM;
	ret->cap = NODES_FIRST;
	parser_advance(&p);
	do
		parse_definition(&p);
	while (p.r == 0 && p.now.kind != GQL_T_END);
	ret->text = p.lexer.text;
	ret->text_n = p.lexer.text_n;
	if (p.r < 0)
		gql_doc_done(ret);
	return p.r;
}

void gql_doc_done(struct gql_doc *doc)
{
	free(doc->node);
	free(doc->text);
	*doc = (struct gql_doc){0};
}

const char *gql_operation_word(enum gql_operation op)
{
	return operation_words[op];
}
