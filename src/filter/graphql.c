/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: recursive descent with one token of lookahead; the functions follow appendix
 * B.2 and B.3. A node is appended at its first token and closed (its `end` is set) after its last
 * one. Depth is counted where the grammar recurses: selection sets, values, types. */
#include "filter/graphql.h"
#include "filter/graphql_lex.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

struct parser {
	struct gql_lexer lexer;
	struct gql_token now;
	struct gql_doc *doc;
	unsigned depth;
};

static int selection_set(struct parser *p, uint32_t parent);
static int value(struct parser *p, uint32_t parent, bool constant);

static int advance(struct parser *p)
{
	return gql_lex(&p->lexer, &p->now);
}

static int unexpected(struct parser *p, const char *why)
{
	return gql_fail(&p->lexer, -EINVAL, p->now.at, why);
}

static bool is_at(const struct parser *p, char c)
{
	return p->now.kind == GQL_T_PUNCTUATOR && p->now.c == c;
}

static bool is_at_word(const struct parser *p, struct str word)
{
	return p->now.kind == GQL_T_NAME && str_eq(p->now.text, word);
}

static int expect(struct parser *p, char c, const char *why)
{
	return is_at(p, c) ? advance(p) : unexpected(p, why);
}

static int name(struct parser *p, struct str *ret)
{
	if (p->now.kind != GQL_T_NAME)
		return unexpected(p, "a name is missing");
	*ret = p->now.text;
	return advance(p);
}

static int enter(struct parser *p)
{
	if (p->depth == GQL_DEPTH_MAX)
		return gql_fail(&p->lexer, -E2BIG, p->now.at, "nested too deep");
	p->depth++;
	return 0;
}

static int open_node(struct parser *p, enum gql_kind kind, uint32_t parent, uint32_t *ret)
{
	struct gql_doc *doc = p->doc;

	if (doc->n == doc->cap) {
		uint32_t cap = doc->cap ? doc->cap * 2 : 64;
		struct gql_node *node = reallocarray(doc->node, cap, sizeof(*node));

		if (!node)
			return -ENOMEM;
		doc->node = node;
		doc->cap = cap;
	}
	*ret = doc->n++;
	doc->node[*ret] = (struct gql_node){.kind = kind, .parent = parent, .end = doc->n};
	return 0;
}

static int close_node(struct parser *p, uint32_t node, int r)
{
	p->doc->node[node].end = p->doc->n;
	return r;
}

/* Set the name or text of a node from the token, and advance. */
static int take_text(struct parser *p, struct str *at)
{
	*at = p->now.text;
	return advance(p);
}

/* name ':' value, as an argument (2.6) or a field of an input object (2.9.8). */
static int named_value(struct parser *p, enum gql_kind kind, uint32_t parent, bool constant)
{
	uint32_t node;
	int r = open_node(p, kind, parent, &node);

	if (r == 0)
		r = name(p, &p->doc->node[node].name);
	if (r == 0)
		r = expect(p, ':', "a colon is missing");
	if (r == 0)
		r = value(p, node, constant);
	return r < 0 ? r : close_node(p, node, 0);
}

static int variable(struct parser *p, uint32_t node)
{
	int r = advance(p);

	return r < 0 ? r : name(p, &p->doc->node[node].name);
}

static int list(struct parser *p, uint32_t node, bool constant)
{
	int r = advance(p);

	while (r == 0 && !is_at(p, ']'))
		r = value(p, node, constant);
	return r < 0 ? r : advance(p);
}

static int object(struct parser *p, uint32_t node, bool constant)
{
	int r = advance(p);

	while (r == 0 && !is_at(p, '}'))
		r = named_value(p, GQL_OBJECT_FIELD, node, constant);
	return r < 0 ? r : advance(p);
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
static int value(struct parser *p, uint32_t parent, bool constant)
{
	enum gql_kind kind = kind_of_value(p);
	uint32_t node;
	int r;

	if (kind == GQL_OPERATION || (kind == GQL_VARIABLE && constant))
		return unexpected(p, "a value is missing");
	r = enter(p);
	if (r == 0)
		r = open_node(p, kind, parent, &node);
	if (r < 0)
		return r;
	if (kind == GQL_VARIABLE)
		r = variable(p, node);
	else if (kind == GQL_LIST)
		r = list(p, node, constant);
	else if (kind == GQL_OBJECT)
		r = object(p, node, constant);
	else
		r = take_text(p, &p->doc->node[node].text);
	p->depth--;
	return r < 0 ? r : close_node(p, node, 0);
}

/* Optional; not empty if it is there. */
static int arguments(struct parser *p, uint32_t parent, bool constant)
{
	int r;

	if (!is_at(p, '('))
		return 0;
	r = advance(p);
	do
		r = r < 0 ? r : named_value(p, GQL_ARGUMENT, parent, constant);
	while (r == 0 && !is_at(p, ')'));
	return r < 0 ? r : advance(p);
}

/* 2.12; none or more. */
static int directives(struct parser *p, uint32_t parent, bool constant)
{
	int r = 0;

	while (r == 0 && is_at(p, '@')) {
		uint32_t node;

		r = advance(p);
		if (r == 0)
			r = open_node(p, GQL_DIRECTIVE, parent, &node);
		if (r == 0)
			r = name(p, &p->doc->node[node].name);
		if (r == 0)
			r = arguments(p, node, constant);
		if (r == 0)
			r = close_node(p, node, 0);
	}
	return r;
}

/* 2.11; the type itself is not used. */
static int type(struct parser *p)
{
	struct str ignored;
	int r;

	if (is_at(p, '[')) {
		r = enter(p);
		if (r == 0)
			r = advance(p);
		if (r == 0)
			r = type(p);
		if (r == 0)
			r = expect(p, ']', "a list type without its end");
		p->depth--;
	} else {
		r = name(p, &ignored);
	}
	return r == 0 && is_at(p, '!') ? advance(p) : r;
}

/* 2.10: $name: Type = value @directives */
static int variable_definition(struct parser *p, uint32_t parent)
{
	uint32_t node;
	int r = open_node(p, GQL_VARIABLE_DEFINITION, parent, &node);

	if (r == 0)
		r = expect(p, '$', "a variable is missing");
	if (r == 0)
		r = name(p, &p->doc->node[node].name);
	if (r == 0)
		r = expect(p, ':', "a colon is missing");
	if (r == 0)
		r = type(p);
	if (r == 0 && is_at(p, '=')) {
		r = advance(p);
		if (r == 0)
			r = value(p, node, true);
	}
	if (r == 0)
		r = directives(p, node, true);
	return r < 0 ? r : close_node(p, node, 0);
}

static int variable_definitions(struct parser *p, uint32_t parent)
{
	int r;

	if (!is_at(p, '('))
		return 0;
	r = advance(p);
	do
		r = r < 0 ? r : variable_definition(p, parent);
	while (r == 0 && !is_at(p, ')'));
	return r < 0 ? r : advance(p);
}

/* 2.5: [alias:] name [(arguments)] [@directives] [{selections}] */
static int field(struct parser *p, uint32_t node)
{
	int r = name(p, &p->doc->node[node].name);

	if (r == 0 && is_at(p, ':')) {
		p->doc->node[node].text = p->doc->node[node].name;
		r = advance(p);
		if (r == 0)
			r = name(p, &p->doc->node[node].name);
	}
	if (r == 0)
		r = arguments(p, node, false);
	if (r == 0)
		r = directives(p, node, false);
	return r == 0 && is_at(p, '{') ? selection_set(p, node) : r;
}

/* 2.8, after the dots: a fragment's name, or [on Type] [@directives] {selections} */
static int spread(struct parser *p, uint32_t node)
{
	int r = 0;

	if (p->now.kind == GQL_T_NAME && !is_at_word(p, STR("on"))) {
		r = name(p, &p->doc->node[node].name);
		return r < 0 ? r : directives(p, node, false);
	}
	p->doc->node[node].kind = GQL_INLINE;
	if (is_at_word(p, STR("on"))) {
		r = advance(p);
		if (r == 0)
			r = name(p, &p->doc->node[node].text);
	}
	if (r == 0)
		r = directives(p, node, false);
	return r < 0 ? r : selection_set(p, node);
}

static int selection(struct parser *p, uint32_t parent)
{
	bool dots = is_at(p, '.');
	uint32_t node;
	int r = open_node(p, dots ? GQL_SPREAD : GQL_FIELD, parent, &node);

	if (r < 0)
		return r;
	if (dots) {
		r = advance(p);
		if (r == 0)
			r = spread(p, node);
	} else {
		r = field(p, node);
	}
	return r < 0 ? r : close_node(p, node, 0);
}

/* 2.4; never empty. */
static int selection_set(struct parser *p, uint32_t parent)
{
	int r = enter(p);

	if (r == 0)
		r = expect(p, '{', "selections are missing");
	do
		r = r < 0 ? r : selection(p, parent);
	while (r == 0 && !is_at(p, '}'));
	p->depth--;
	return r < 0 ? r : advance(p);
}

/* 2.3, after its keyword, if it has one. */
static int operation(struct parser *p, uint32_t node)
{
	int r = 0;

	if (p->now.kind == GQL_T_NAME)
		r = name(p, &p->doc->node[node].name);
	if (r == 0)
		r = variable_definitions(p, node);
	if (r == 0)
		r = directives(p, node, false);
	return r < 0 ? r : selection_set(p, node);
}

/* 2.8: fragment Name on Type @directives {selections} */
static int fragment(struct parser *p, uint32_t node)
{
	int r = 0;

	if (is_at_word(p, STR("on")))
		return unexpected(p, "a fragment cannot be named on");
	r = name(p, &p->doc->node[node].name);
	if (r == 0 && !is_at_word(p, STR("on")))
		return unexpected(p, "a fragment's type is missing");
	if (r == 0)
		r = advance(p);
	if (r == 0)
		r = name(p, &p->doc->node[node].text);
	if (r == 0)
		r = directives(p, node, false);
	return r < 0 ? r : selection_set(p, node);
}

static int definition(struct parser *p)
{
	static const enum gql_operation ops[] = {GQL_QUERY, GQL_MUTATION, GQL_SUBSCRIPTION};
	uint32_t node;
	int r = open_node(p, GQL_OPERATION, GQL_NONE, &node);

	if (r < 0)
		return r;
	if (is_at(p, '{'))
		return close_node(p, node, selection_set(p, node));
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (!is_at_word(p, str_from(gql_operation_word(ops[i]))))
			continue;
		p->doc->node[node].op = ops[i];
		r = advance(p);
		return close_node(p, node, r < 0 ? r : operation(p, node));
	}
	if (!is_at_word(p, STR("fragment")))
		return unexpected(p, "neither an operation nor a fragment");
	p->doc->node[node].kind = GQL_FRAGMENT;
	r = advance(p);
	return close_node(p, node, r < 0 ? r : fragment(p, node));
}

/* 2.1.1; bytes that are not UTF-8 are refused, too. */
static int check_characters(struct parser *p)
{
	struct str s = p->lexer.source;

	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t' && s.p[i] != '\n' &&
			s.p[i] != '\r')
			return gql_fail(&p->lexer, -EINVAL, i, "a control character");
	return utf8_is_valid(s) ? 0 : gql_fail(&p->lexer, -EINVAL, 0, "not UTF-8");
}

static int document(struct parser *p)
{
	int r = check_characters(p);

	if (r == 0)
		r = advance(p);
	do
		r = r < 0 ? r : definition(p);
	while (r == 0 && p->now.kind != GQL_T_END);
	return r;
}

int gql_parse(struct str source, struct gql_doc *ret, struct gql_problem *why)
{
	struct parser p = {.lexer = {.source = source, .problem = why}, .doc = ret};
	int r;

	*why = (struct gql_problem){0};
	*ret = (struct gql_doc){0};
	if (source.n > GQL_SOURCE_MAX)
		return gql_fail(&p.lexer, -E2BIG, GQL_SOURCE_MAX, "too long");
	r = document(&p);
	ret->text = p.lexer.text;
	ret->text_n = p.lexer.text_n;
	if (r < 0)
		gql_doc_done(ret);
	return r;
}

void gql_doc_done(struct gql_doc *doc)
{
	free(doc->node);
	free(doc->text);
	*doc = (struct gql_doc){0};
}

const char *gql_operation_word(enum gql_operation op)
{
	switch (op) {
	case GQL_MUTATION:
		return "mutation";
	case GQL_SUBSCRIPTION:
		return "subscription";
	case GQL_QUERY:
	default:
		return "query";
	}
}
