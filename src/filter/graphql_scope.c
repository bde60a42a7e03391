/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the whole document is checked, node by node in the order of the array, and
 * then all of the variables. The name of a node or member decides what its value must be. A value
 * that is a variable is looked up, in the variables first, then among the defaults of every
 * operation. */
#include "filter/graphql_scope.h"

#include "base/strset.h"
#include "policy/path.h"

#include <errno.h>

enum {
	NAME_MAX_BYTES = 512,
	ARGUMENTS_MAX = 256,
	STEPS_MAX = 1000000, /* a variable with a long value may be used very often */
};

struct graphql_scope {
	struct strset nodes, names, ids; /* node ids, full names in lower case, database ids */
};

struct graphql_scope *graphql_scope_new(void)
{
	return calloc(1, sizeof(struct graphql_scope));
}

struct graphql_scope *graphql_scope_free(struct graphql_scope *scope)
{
	if (!scope)
		return NULL;
	strset_done(&scope->nodes);
	strset_done(&scope->names);
	strset_done(&scope->ids);
	free(scope);
	return NULL;
}

/* Return "owner/name" in lower case in the caller's memory, or the null view if it is too long. */
static struct str lower(struct str s, char mem[NAME_MAX_BYTES])
{
	if (s.n > NAME_MAX_BYTES)
		return STR_NULL;
	for (size_t i = 0; i < s.n; i++)
		mem[i] = str_lower_char(s.p[i]);
	return str_make(mem, s.n);
}

/* Set *id to the database id of the repository, or to 0 if it is not certain. */
static int agree_on_id(struct str node_id, uint64_t *id)
{
	uint64_t inside = 0;
	int r = graphql_node_repository(node_id, &inside);

	if (r == -ENOMEM)
		return r;
	if (r >= 0 && !str_starts(node_id, STR("R_")))
		return -EINVAL;
	if (r == 0)
		*id = *id == 0 || *id == inside ? inside : 0;
	return 0;
}

int graphql_scope_add(
	struct graphql_scope *scope, struct str node_id, struct str full_name, uint64_t database_id)
{
	char mem[NAME_MAX_BYTES];
	struct str name = lower(full_name, mem);
	size_t slash = str_chr(name, '/');
	int r = 0;

	if (full_name.n > 0 && (slash == 0 || slash + 1 >= name.n))
		return -EINVAL;
	if (node_id.n > 0)
		r = agree_on_id(node_id, &database_id);
	if (r == 0 && name.n > 0)
		r = strset_add(&scope->names, name);
	if (r == 0 && node_id.n > 0)
		r = strset_add(&scope->nodes, node_id);
	if (r == 0 && database_id != 0)
		r = strset_add(&scope->ids, str_make(&database_id, sizeof(database_id)));
	return r;
}

/* What a value must be, by the name of its argument, field or member. */
enum demand { DEMAND_ANY, DEMAND_REPOSITORY_ID, DEMAND_FULL_NAME, DEMAND_NODE_ID };

static enum demand demand_of(struct str name)
{
	static const struct str ids[] = {STR("id"), STR("ID"), STR("ids"), STR("IDS")};

	if (str_eq(name, STR("repositoryId")))
		return DEMAND_REPOSITORY_ID;
	if (str_eq(name, STR("repositoryNameWithOwner")))
		return DEMAND_FULL_NAME;
	if (str_eq(name, STR("clientMutationId")))
		return DEMAND_ANY;
	if (str_is_one_of(name, ids, ARRAY_SIZE(ids)) || str_ends(name, STR("Id")) ||
		str_ends(name, STR("Ids")))
		return DEMAND_NODE_ID;
	return DEMAND_ANY;
}

struct check {
	const struct graphql_scope *scope;
	const struct graphql_request *req;
	const struct gql_doc *doc;
	struct buf *detail;
	unsigned steps;
};

/* Return 1, with the offence added to detail. */
static int scope_refuse(struct check *c, struct str what, struct str value)
{
	int r = buf_add_str(c->detail, str_prefix(what, 64));

	if (r == 0 && value.n > 0)
		r = buf_add_char(c->detail, ':');
	if (r == 0)
		r = buf_add_str(c->detail, str_prefix(value, GRAPHQL_SCOPE_DETAIL_MAX - 65));
	return r < 0 ? r : 1;
}

static int refuse_unknown(struct check *c)
{
	return scope_refuse(c, STR("<unresolved-variable>"), STR_NULL);
}

static bool has_name(const struct graphql_scope *scope, struct str full_name)
{
	char mem[NAME_MAX_BYTES];

	return strset_has(&scope->names, lower(full_name, mem));
}

/* Return 1, 0 or -ENOMEM. From an id in the older form nothing can be read, so only the
 * repositories' own are known. */
static int is_ours(const struct graphql_scope *scope, struct str node_id)
{
	uint64_t id;
	int r = strset_has(&scope->nodes, node_id) ? 1 : graphql_node_repository(node_id, &id);

	if (r == -ENOMEM)
		return r;
	return r == 1 || (r == 0 && strset_has(&scope->ids, str_make(&id, sizeof(id))));
}

static int step(struct check *c)
{
	return c->steps++ < STEPS_MAX ? 0 : scope_refuse(c, STR("<too-complex>"), STR_NULL);
}

static int judge_text(struct check *c, enum demand demand, struct str name, struct str value)
{
	int ok = demand == DEMAND_REPOSITORY_ID ? strset_has(&c->scope->nodes, value)
		 : demand == DEMAND_FULL_NAME   ? has_name(c->scope, value)
						: is_ours(c->scope, value);

	return ok < 0 ? ok : ok ? 0 : scope_refuse(c, name, value);
}

/* Judge a value that is neither text nor a list. No node id of GitHub is a number, and the members
 * of an object are judged by their own names. But where a repository's own id or name is expected,
 * nothing else is accepted. */
static int judge_other(struct check *c, enum demand demand, struct str name, bool is_null)
{
	return demand == DEMAND_NODE_ID || is_null ? 0
						   : scope_refuse(c, name, STR("<not-a-string>"));
}

static int judge_json(struct check *c, enum demand demand, struct str name, const json_t *value)
{
	int r = step(c);

	if (r != 0)
		return r;
	if (json_is_string(value))
		return judge_text(c, demand, name, json_str(value));
	if (!json_is_array(value))
		return judge_other(c, demand, name, json_is_null(value));
	for (size_t i = 0; r == 0 && i < json_array_size(value); i++)
		r = judge_json(c, demand, name, json_array_get(value, i));
	return r;
}

static const json_t *variable_value(const struct check *c, struct str name)
{
	return c->req->variables ? json_object_getn(c->req->variables, name.p, name.n) : NULL;
}

static int judge_node(struct check *c, enum demand demand, struct str name, uint32_t i);

/* Judge the default values that an operation has for a variable. *found is set if there is one. */
static int judge_defaults(struct check *c, enum demand demand, struct str name, struct str variable,
	uint32_t operation, bool *found)
{
	const struct gql_doc *doc = c->doc;
	int r = 0;

	for (uint32_t i = gql_first(doc, operation); r == 0 && i != GQL_NONE;
		i = gql_next(doc, i)) {
		uint32_t value = gql_first(doc, i);

		if (doc->node[i].kind != GQL_VARIABLE_DEFINITION)
			break; /* they come first */
		r = step(c);
		if (r != 0 || value == GQL_NONE || doc->node[value].kind == GQL_DIRECTIVE ||
			!str_eq(doc->node[i].name, variable))
			continue;
		*found = true;
		r = judge_node(c, demand, name, value); /* a constant: no variable again */
	}
	return r;
}

static int judge_variable(struct check *c, enum demand demand, struct str name, struct str variable)
{
	const json_t *given = variable_value(c, variable);
	bool found = false;
	int r = 0;

	if (given)
		return judge_json(c, demand, name, given);
	for (uint32_t i = gql_first(c->doc, GQL_NONE); r == 0 && i != GQL_NONE;
		i = gql_next(c->doc, i)) {
		r = step(c);
		if (r == 0)
			r = judge_defaults(c, demand, name, variable, i, &found);
	}
	return r == 0 && !found ? refuse_unknown(c) : r;
}

/* Judge value node i. */
static int judge_node(struct check *c, enum demand demand, struct str name, uint32_t i)
{
	const struct gql_node *node = &c->doc->node[i];
	int r = step(c);

	if (r != 0)
		return r;
	if (node->kind == GQL_STRING)
		return judge_text(c, demand, name, node->text);
	if (node->kind == GQL_VARIABLE)
		return judge_variable(c, demand, name, node->name);
	if (node->kind != GQL_LIST)
		return judge_other(c, demand, name, node->kind == GQL_NULL);
	for (uint32_t part = gql_first(c->doc, i); r == 0 && part != GQL_NONE;
		part = gql_next(c->doc, part))
		r = judge_node(c, demand, name, part);
	return r;
}

/* Judge all members of the variables by their keys, at any depth (jansson limits it). */
static int judge_members(struct check *c, const json_t *value)
{
	const char *key;
	json_t *member;
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(value); i++)
		r = judge_members(c, json_array_get(value, i));
	json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
		enum demand demand = demand_of(str_from(key));

		if (r == 0 && demand != DEMAND_ANY)
			r = judge_json(c, demand, str_from(key), member);
		if (r == 0)
			r = judge_members(c, member);
		if (r != 0)
			break;
	}
	return r;
}

/* Return the value of field i's argument of that name, or GQL_NONE. */
static uint32_t argument(const struct gql_doc *doc, uint32_t i, struct str name)
{
	for (uint32_t part = gql_first(doc, i); part != GQL_NONE; part = gql_next(doc, part)) {
		if (doc->node[part].kind != GQL_ARGUMENT)
			break; /* arguments come first */
		if (str_eq(doc->node[part].name, name))
			return gql_first(doc, part);
	}
	return GQL_NONE;
}

/* Refuse a field if an argument that selects the repository or its owner is repeated, because
 * servers may take either one; or if it has so many arguments that looking for them takes long. */
static int check_arguments(struct check *c, uint32_t field)
{
	static const struct str names[] = {STR("owner"), STR("name"), STR("login")};
	unsigned seen[ARRAY_SIZE(names)] = {0}, n = 0;
	const struct gql_doc *doc = c->doc;

	for (uint32_t i = gql_first(doc, field); i != GQL_NONE; i = gql_next(doc, i)) {
		if (doc->node[i].kind != GQL_ARGUMENT)
			break;
		if (n++ == ARGUMENTS_MAX)
			return scope_refuse(c, STR("<too-complex>"), STR_NULL);
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (str_eq(doc->node[i].name, names[k]) && seen[k]++ > 0)
				return scope_refuse(
					c, STR("<repeated-argument>"), doc->node[field].name);
	}
	return 0;
}

static bool has_arguments(const struct gql_doc *doc, uint32_t i)
{
	uint32_t first = gql_first(doc, i);

	return first != GQL_NONE && doc->node[first].kind == GQL_ARGUMENT;
}

/* Return a string's text, or that of a variable that is bound to one; else the null view. */
static struct str text_of(const struct check *c, uint32_t i)
{
	const struct gql_node *node = i == GQL_NONE ? NULL : &c->doc->node[i];

	if (!node)
		return STR_NULL;
	if (node->kind == GQL_VARIABLE)
		return json_str(variable_value(c, node->name));
	return node->kind == GQL_STRING ? node->text : STR_NULL;
}

/* Judge field i, repository(name:). Its owner is an argument next to the name, or the login of the
 * field that it is selected from. */
static int judge_repository(struct check *c, uint32_t i, uint32_t name)
{
	_cleanup_(buf_donep) struct buf full = BUF_INIT(NAME_MAX_BYTES + 1);
	uint32_t owner = argument(c->doc, i, STR("owner")), parent = c->doc->node[i].parent;
	struct str text = text_of(c, name);
	int r;

	while (parent != GQL_NONE && c->doc->node[parent].kind == GQL_INLINE)
		parent = c->doc->node[parent].parent;
	if (owner == GQL_NONE && parent != GQL_NONE && c->doc->node[parent].kind == GQL_FIELD)
		owner = argument(c->doc, parent, STR("login"));
	if (!text.p || (owner != GQL_NONE && !text_of(c, owner).p))
		return refuse_unknown(c);
	if (owner == GQL_NONE)
		r = buf_add_str(&full, STR("<unknown>"));
	else
		r = buf_add_str(&full, text_of(c, owner));
	if (r == 0)
		r = buf_add_char(&full, '/');
	if (r == 0)
		r = buf_add_str(&full, text);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && owner != GQL_NONE && has_name(c->scope, buf_str(&full)))
		return 0;
	return scope_refuse(c, STR("repository"), r < 0 ? text : buf_str(&full));
}

/* Fields that lead to repositories of any owner: these if they have an argument, ... */
static const struct str lists[] = {STR("repositories"), STR("forks"), STR("pinnedItems"),
	STR("pinnableItems"), STR("starredRepositories"), STR("watching"),
	STR("repositoriesContributedTo"), STR("topRepositories")};
/* ... these always. */
static const struct str searches[] = {STR("search"), STR("itemShowcase")};

static int judge_field(struct check *c, uint32_t i)
{
	const struct gql_doc *doc = c->doc;
	struct str name = doc->node[i].name;
	uint32_t value;
	int r;

	if (str_is_one_of(name, searches, ARRAY_SIZE(searches)) ||
		(str_is_one_of(name, lists, ARRAY_SIZE(lists)) && has_arguments(doc, i))) {
		r = buf_printf(c->detail, "<multi-repo:%.*s>", STR_FMT(name));
		return r < 0 ? r : 1;
	}
	if (str_eq(name, STR("resource")) && argument(doc, i, STR("url")) != GQL_NONE)
		return scope_refuse(c, STR("<url-addressed:resource>"), STR_NULL);
	r = check_arguments(c, i);
	if (r != 0)
		return r;
	value = str_eq(name, STR("repository")) ? argument(doc, i, STR("name")) : GQL_NONE;
	return value == GQL_NONE ? 0 : judge_repository(c, i, value);
}

static int judge_any(struct check *c, uint32_t i)
{
	const struct gql_node *node = &c->doc->node[i];
	enum demand demand;

	if (node->kind == GQL_FIELD)
		return judge_field(c, i);
	if (node->kind != GQL_ARGUMENT && node->kind != GQL_OBJECT_FIELD)
		return 0;
	demand = demand_of(node->name);
	return demand == DEMAND_ANY ? 0 : judge_node(c, demand, node->name, gql_first(c->doc, i));
}

int graphql_scope_check(
	const struct graphql_scope *scope, const struct graphql_request *req, struct buf *detail)
{
	struct check c = {.scope = scope, .req = req, .doc = &req->doc, .detail = detail};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c.doc->n; i++)
		r = judge_any(&c, i);
	return r == 0 && req->variables ? judge_members(&c, req->variables) : r;
}

bool graphql_scope_covers(struct str path)
{
	static const struct str endpoints[] = {
		STR("/graphql"), STR("/api/graphql"), STR("/v3/graphql"), STR("/api/v3/graphql")};

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++)
		if (path_may_be(path, endpoints[i], false))
			return true;
	return false;
}
