/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/filter_internal.h"

#include "policy/glob.h"

enum { INLINE_MAX = 2 };

static unsigned inline_level(const struct gql_doc *doc, uint32_t i)
{
	unsigned level = 0;

	for (; doc->node[i].kind == GQL_INLINE; i = doc->node[i].parent)
		level++;
	return level;
}

/* Return the root field at or after i, or GQL_NONE at the operation's end. */
static uint32_t next_root(const struct gql_doc *doc, uint32_t operation, uint32_t i)
{
	while (i < doc->node[operation].end) {
		if (doc->node[i].kind == GQL_FIELD)
			return i;
		i = doc->node[i].kind == GQL_INLINE ? i + 1 : doc->node[i].end;
	}
	return GQL_NONE;
}

static bool has_hidden_roots(const struct gql_doc *doc, uint32_t operation)
{
	uint32_t i = operation + 1;

	while (i < doc->node[operation].end) {
		enum gql_kind kind = doc->node[i].kind;

		if (kind == GQL_SPREAD || (kind == GQL_INLINE && inline_level(doc, i) > INLINE_MAX))
			return true;
		i = kind == GQL_INLINE ? i + 1 : doc->node[i].end;
	}
	return false;
}

static char *const *list_of(const struct allow_rule *rule, enum gql_operation op)
{
	return op == GQL_MUTATION       ? rule->graphql_mutations
	       : op == GQL_SUBSCRIPTION ? rule->graphql_subscriptions
					: rule->graphql_queries;
}

static bool is_allowed(char *const *list, struct str field)
{
	for (size_t i = 0; list && list[i]; i++)
		if (glob_match(str_from(list[i]), field))
			return true;
	return false;
}

static int say(struct buf *out, const char *word, struct str field)
{
	return buf_printf(out, "%s/%.*s", word, STR_FMT(field));
}

int graphql_operations_judge(const struct allow_rule *rule, const struct graphql_request *req,
	struct buf *tag, struct buf *detail)
{
	const struct gql_doc *doc = &req->doc;
	uint32_t operation = req->operation, first = next_root(doc, operation, operation + 1);
	enum gql_operation op = doc->node[operation].op;
	char *const *list = list_of(rule, op);
	const char *word = gql_operation_word(op);
	uint32_t at = first;
	int r;

	if (first == GQL_NONE || has_hidden_roots(doc, operation)) {
		r = buf_printf(tag, "%s/<fragment-spread>", word);
		if (r == 0)
			r = buf_add_str(detail, STR("<fragment-spread>"));
		return r < 0 ? r : 1;
	}
	while (at != GQL_NONE && is_allowed(list, doc->node[at].name))
		at = next_root(doc, operation, doc->node[at].end);
	r = say(tag, word, doc->node[at == GQL_NONE ? first : at].name);
	if (r == 0 && !list)
		r = buf_printf(detail, "%s:<blocked>", word);
	else if (r == 0)
		r = say(detail, word, doc->node[at == GQL_NONE ? first : at].name);
	return r < 0 ? r : at != GQL_NONE;
}
