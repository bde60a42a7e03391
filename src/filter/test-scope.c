/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/graphql_scope.h"

#include "tap.h"
#include <errno.h>

#define OURS "R_kgDORH34qw"           /* repository 1149106347, Me/Mine */
#define OURS_ISSUE "I_kwDORH34q80wOQ" /* something in it */
#define THEIRS "R_kgDORm2NDQ"
#define THEIRS_ISSUE "I_kwDORH3f-M4AADA5"

static struct graphql_scope *scope;

/* "" if it is in scope, else the offence. */
static const char *check_body(const char *body)
{
	static char text[512];
	_cleanup_(buf_donep) struct buf detail = BUF_INIT(4096);
	struct graphql_request req;
	const char *problem = NULL;
	int r;

	must(graphql_request_read(str_from(body), &req, &problem) == 0);
	if (problem)
		tap_fail("%s: %s", body, problem);
	r = problem ? 0 : graphql_scope_check(scope, &req, &detail);
	must(r >= 0 && (r == 1) == (buf_len(&detail) > 0));
	snprintf(text, sizeof(text), "%.*s", STR_FMT(buf_str(&detail)));
	graphql_request_done(&req);
	return text;
}

/* query's quotes are written as '. */
static const char *ask_with(const char *query, const char *variables)
{
	static char body[8192];
	char *at = body + snprintf(body, sizeof(body), "{\"query\":\"");

	for (; *query; query++) {
		if (*query == '\'')
			*at++ = '\\';
		*at++ = *query == '\'' ? '"' : *query;
	}
	snprintf(at, 2048, "\",\"variables\":%s}", variables);
	return check_body(body);
}

static const char *ask(const char *query)
{
	return ask_with(query, "null");
}

static void test_node_ids(void)
{
	static const struct {
		const char *id;
		int r;
		uint64_t repository;
	} cases[] = {
		{"R_kgDORH34qw", 0, 1149106347},
		{"R_kgDORm2NDQ", 0, 1181584653},
		{"R_kgDORH3f-A", 0, 1149100024},
		{"R_kgDORH3f_A", 0, 1149100028},
		{"I_kwDORH34q80wOQ", 0, 1149106347},
		{"I_kwDORH3f-M4AADA5", 0, 1149100024},
		{"I_kwDOO5rJ/84AAYaf", 0, 999999999},
		{"R_kgDORH34qw==", 0, 1149106347},
		{"R_kgDMyA", 0, 200},                     /* uint 8 */
		{"R_kgDNAQA", 0, 256},                    /* uint 16 */
		{"R_kgAF", 0, 5},                         /* fixint */
		{"R_kgDPAAAAAQAAAAA", 0, 4294967296},     /* uint 64 */
		{"REF_kwAFr3JlZnMvaGVhZHMvbWFpbg", 0, 5}, /* a string of 15 behind it */
		{"U_kgDOAAjmPw", 1, 0},
		{"O_kgDNMDk", 1, 0},
		{"BOT_kgDNMDk", 1, 0},
		{"PVT_kwDORH34q80wOQ", -EINVAL, 0}, /* its owner's number */
		{"R_kgDORH34qwA", -EINVAL, 0},      /* spare bits or bytes */
		{"R_kgDORH34qx", -EINVAL, 0},
		{"R_kgDORH34qwAA", -EINVAL, 0},
		{"R_kgDORH34q=", -EINVAL, 0},
		{"R_kgDORH=34qw", -EINVAL, 0},
		{"R_kgDORH34qw=", -EINVAL, 0},
		{"R_kQDORH", -EINVAL, 0},     /* one element only */
		{"R_kgCjYWJj", -EINVAL, 0},   /* a string where the number must be */
		{"R_kgDSgAAAAA", -EINVAL, 0}, /* negative */
		{"R_gqFhAQ", -EINVAL, 0},     /* a map */
		{"R_kgA", -EINVAL, 0},
		{"r_kgDORH34qw", -EINVAL, 0},
		{"TOOLONG_kgDORH34qw", -EINVAL, 0},
		{"_kgDORH34qw", -EINVAL, 0},
		{"MDEwOlJlcG9zaXRvcnkx", -EINVAL, 0},
		{"R_", -EINVAL, 0},
		{"U_x", -EINVAL, 0},
		{"U_a b c", -EINVAL, 0},
		{"", -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t id = 0;
		int r = graphql_node_repository(str_from(cases[i].id), &id);

		if (r != cases[i].r || (r == 0 && id != cases[i].repository))
			tap_fail("%s: %d, %llu", cases[i].id, r, (unsigned long long)id);
	}
}

static void test_repository_by_name(void)
{
	check_z(ask("{repository(owner:'me',name:'mine'){id}}"), "");
	check_z(ask("{repository(owner:'ME',name:'Mine'){id}}"), "");
	check_z(ask("{repository(owner:'me',name:'other'){id}}"), "repository:me/other");
	check_z(ask("{x:repository(owner:'you',name:'mine'){id}}"), "repository:you/mine");
	check_z(ask("{repository(name:'mine'){id}}"), "repository:<unknown>/mine");
	check_z(ask("{user(login:'me'){repository(name:'mine'){id}}}"), "");
	check_z(ask("{user(login:'me'){... on User{...{repository(name:'mine'){id}}}}}"), "");
	check_z(ask("{user(login:'you'){repository(name:'mine'){id}}}"), "repository:you/mine");
	check_z(ask("{viewer{repository(name:'mine'){id}}}"), "repository:<unknown>/mine");
	check_z(ask("{user(login:'me'){...F}} fragment F on User{repository(name:'mine'){id}}"),
		"repository:<unknown>/mine");
	check_z(ask("{node{repository{id}}}"), "");
	check_z(ask("{repository(owner:'me',name:['mine']){id}}"), "<unresolved-variable>");
	check_z(ask("{repository(owner:'me',owner:'you',name:'mine'){id}}"),
		"<repeated-argument>:repository");
	check_z(ask("{user(login:'me',login:'you'){repository(name:'mine'){id}}}"),
		"<repeated-argument>:user");
	check_z(ask("{repository(owner:'me/mine',name:''){id}}"), "repository:me/mine/");
	check_z(ask("query A{viewer{login}} "), "");
}

static void test_repository_by_variables(void)
{
	static const char query[] =
		"query($o:String!,$n:String!='mine'){repository(owner:$o,name:$n){id}}";

	check_z(ask_with(query, "{\"o\":\"me\",\"n\":\"mine\"}"), "");
	check_z(ask_with(query, "{\"o\":\"me\",\"n\":\"x\"}"), "repository:me/x");
	check_z(ask_with(query, "{\"o\":\"me\"}"), "<unresolved-variable>");
	check_z(ask_with(query, "{\"o\":[\"me\"],\"n\":\"mine\"}"), "<unresolved-variable>");
	check_z(ask_with(query, "{\"o\":null,\"n\":\"mine\"}"), "<unresolved-variable>");
}

static void test_ids(void)
{
	check_z(ask("{node(id:'" OURS_ISSUE "'){id}}"), "");
	check_z(ask("{node(id:'" THEIRS_ISSUE "'){id}}"), "id:" THEIRS_ISSUE);
	check_z(ask("{nodes(ids:['" OURS "','U_kgDOAAjmPw']){id}}"), "");
	check_z(ask("{nodes(ids:['" OURS "',['" THEIRS "']]){id}}"), "ids:" THEIRS);
	check_z(ask("mutation{addComment(input:{subjectId:'" OURS_ISSUE "',body:'x'}){id}}"), "");
	check_z(ask("mutation{addComment(input:{subjectId:'" THEIRS_ISSUE "'}){id}}"),
		"subjectId:" THEIRS_ISSUE);
	check_z(ask("mutation{x(input:{a:[{b:{labelIds:['" THEIRS "']}}]}){id}}"),
		"labelIds:" THEIRS);
	check_z(ask("mutation{x(input:{clientMutationId:'anything'}){id}}"), "");
	check_z(ask("{node(id:'MDEwOlJlcG9zaXRvcnkx'){id}}"), "id:MDEwOlJlcG9zaXRvcnkx");
	check_z(ask("{node(id:\\u00221\\u0022){id}}"), "id:1");
	check_z(ask("{node(id:null){id} app(appId:5){id}}"), "");
	check_z(ask("{a} fragment F on X{node(id:'" THEIRS "'){id}}"), "id:" THEIRS);
	check_z(ask("{a @d(id:'" THEIRS "')}"), "id:" THEIRS);
}

static void test_repository_id(void)
{
	check_z(ask("mutation{createIssue(input:{repositoryId:'" OURS "'}){id}}"), "");
	check_z(ask("mutation{createIssue(input:{repositoryId:'" THEIRS "'}){id}}"),
		"repositoryId:" THEIRS);
	/* The id of a thing in a repository is not the repository's. */
	check_z(ask("mutation{createIssue(input:{repositoryId:'" OURS_ISSUE "'}){id}}"),
		"repositoryId:" OURS_ISSUE);
	check_z(ask("mutation{createIssue(input:{repositoryId:5}){id}}"),
		"repositoryId:<not-a-string>");
	check_z(ask("mutation{x(input:{branch:{repositoryNameWithOwner:'Me/Mine'}}){id}}"), "");
	check_z(ask("mutation{x(input:{branch:{repositoryNameWithOwner:'me/x'}}){id}}"),
		"repositoryNameWithOwner:me/x");
}

static void test_ids_by_variables(void)
{
	check_z(ask_with("query($x:ID!){node(id:$x){id}}", "{\"x\":\"" OURS "\"}"), "");
	check_z(ask_with("query($x:ID!){node(id:$x){id}}", "{\"x\":\"" THEIRS "\"}"), "id:" THEIRS);
	check_z(ask_with("query($x:[ID!]){nodes(ids:$x){id}}", "{\"x\":[[\"" THEIRS "\"]]}"),
		"ids:" THEIRS);
	check_z(ask_with("query($x:ID!){node(id:$x){id}}", "{}"), "<unresolved-variable>");
	check_z(ask("query($x:ID!='" OURS "'){node(id:$x){id}}"), "");
	check_z(ask("query($x:ID!='" THEIRS "'){node(id:$x){id}}"), "id:" THEIRS);
	/* Which of two operations is executed does not matter. */
	check_z(check_body("{\"query\":\"query A($x:ID=\\\"" OURS "\\\"){node(id:$x){id}} "
			   "query B($x:ID=\\\"" THEIRS "\\\"){a}\",\"operationName\":\"A\"}"),
		"id:" THEIRS);
	check_z(ask_with("query($input:I!){a(input:$input){b}}",
			"{\"input\":{\"a\":[{\"repositoryId\":\"" THEIRS "\"}]}}"),
		"repositoryId:" THEIRS);
	check_z(ask_with("query($input:I!){a(input:$input){b}}",
			"{\"input\":{\"a\":[{\"pullRequestId\":[\"" OURS_ISSUE "\"]}]}}"),
		"");
	check_z(ask_with("{a}", "{\"repositoryNameWithOwner\":\"you/yours\"}"),
		"repositoryNameWithOwner:you/yours");
}

static void test_enumeration(void)
{
	check_z(ask("{search(query:'x'){id}}"), "<multi-repo:search>");
	check_z(ask("{viewer{itemShowcase{id}}}"), "<multi-repo:itemShowcase>");
	check_z(ask("{viewer{repositories(first:1){id}}}"), "<multi-repo:repositories>");
	check_z(ask("{viewer{x:starredRepositories(first:1){id}}}"),
		"<multi-repo:starredRepositories>");
	check_z(ask("{viewer{repositories{id}}}"), "");
	check_z(ask("{viewer{repositories @include(if:true){id}}}"), "");
	check_z(ask("{resource(url:'https://github.com/you/yours'){id}}"),
		"<url-addressed:resource>");
}

static void test_adding(void)
{
	_cleanup_(graphql_scope_freep) struct graphql_scope *s = graphql_scope_new();

	must(s);
	check_int(graphql_scope_add(s, STR(OURS), STR_NULL, 0), 0);
	check_int(graphql_scope_add(s, STR(OURS), STR("a/b"), 1149106347), 0);
	check_int(graphql_scope_add(s, STR_NULL, STR("a/b"), 0), 0);
	check_int(graphql_scope_add(s, STR(OURS_ISSUE), STR_NULL, 0), -EINVAL);
	check_int(graphql_scope_add(s, STR("U_kgDOAAjmPw"), STR_NULL, 5), -EINVAL);
	check_int(graphql_scope_add(s, STR_NULL, STR("ab"), 0), -EINVAL);
	check_int(graphql_scope_add(s, STR_NULL, STR("/b"), 0), -EINVAL);
	check_int(graphql_scope_add(s, STR_NULL, STR("a/"), 0), -EINVAL);
}

/* What GitHub's REST documentation has as an example, and an issue of that repository. */
#define OLD "MDEwOlJlcG9zaXRvcnkxMjk2MjY5"
#define OLD_ISSUE "I_kwDOABPHjQc"

static void use(struct graphql_scope *s)
{
	graphql_scope_free(scope);
	scope = s;
	must(scope);
}

static void test_older_ids(void)
{
	struct graphql_scope *before = scope;

	scope = NULL;
	use(graphql_scope_new());
	must(graphql_scope_add(scope, STR(OLD), STR("me/old"), 1296269) == 0);
	check_z(ask("{repository(owner:'me',name:'old'){id}}"), "");
	check_z(ask("{node(id:'" OLD "'){id}}"), "");
	check_z(ask("{x(repositoryId:'" OLD "'){id}}"), "");
	check_z(ask("{node(id:'" OLD_ISSUE "'){id}}"), "");
	check_z(ask("{node(id:'" THEIRS_ISSUE "'){id}}"), "id:" THEIRS_ISSUE);
	/* Another repository, the same one in another spelling, and an issue. */
	check_z(ask("{node(id:'MDEwOlJlcG9zaXRvcnkxMjk2Mjcw'){id}}"),
		"id:MDEwOlJlcG9zaXRvcnkxMjk2Mjcw");
	check_z(ask("{node(id:'" OLD "='){id}}"), "id:" OLD "=");
	check_z(ask("{node(id:'MDU6SXNzdWUx'){id}}"), "id:MDU6SXNzdWUx");
	/* Without the number, nothing inside it is known. */
	use(graphql_scope_new());
	must(graphql_scope_add(scope, STR(OLD), STR("me/old"), 0) == 0);
	check_z(ask("{node(id:'" OLD "'){id}}"), "");
	check_z(ask("{node(id:'" OLD_ISSUE "'){id}}"), "id:" OLD_ISSUE);
	/* Of two numbers neither counts. */
	use(graphql_scope_new());
	must(graphql_scope_add(scope, STR(OURS), STR("me/mine"), 1296269) == 0);
	check_z(ask("{repository(owner:'me',name:'mine'){id}}"), "");
	check_z(ask("{node(id:'" OURS "'){id}}"), "");
	check_z(ask("{node(id:'" OURS_ISSUE "'){id}}"), "id:" OURS_ISSUE);
	check_z(ask("{node(id:'" OLD_ISSUE "'){id}}"), "id:" OLD_ISSUE);
	use(before);
}

static void test_paths(void)
{
	check(graphql_scope_covers(STR("/graphql")));
	check(graphql_scope_covers(STR("/api/graphql")));
	check(graphql_scope_covers(STR("/GraphQL/")));
	/* As routers fold them. */
	check(graphql_scope_covers(STR("//graphql")));
	check(graphql_scope_covers(STR("/graphql//")));
	check(graphql_scope_covers(STR("/api//graphql")));
	check(graphql_scope_covers(STR("/graphql.json")));
	check(graphql_scope_covers(STR("/graphql;v=1")));
	check(graphql_scope_covers(STR("/api;v=1/graphql/")));
	check(graphql_scope_covers(STR("/%67raphql"))); /* of what was encoded twice */
	check(graphql_scope_covers(STR("/api/v3/graphql")));
	check(graphql_scope_covers(STR("/graphql?")));
	check(graphql_scope_covers(STR("/graphql. ")));
	check(graphql_scope_covers(STR("/api /graphql#")));
	check(!graphql_scope_covers(STR("/repos/graphql/graphql")));
	check(!graphql_scope_covers(STR("/repos/graphql/graphql-js/contents/graphql")));
	check(!graphql_scope_covers(STR("/orgs/graphql")));
	check(!graphql_scope_covers(STR("/graphql/graphql-js")));
	check(!graphql_scope_covers(STR("/graphql-js")));
	check(!graphql_scope_covers(STR("/api/v3")));
	check(!graphql_scope_covers(STR("/graphqlx")));
	check(!graphql_scope_covers(STR("/")));
	check(!graphql_scope_covers(STR("")));
}

/* Each use of a variable looks at its whole value. */
static void test_work_is_bounded(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(2 << 20);

	must(buf_add_str(&body, STR("{\"query\":\"query($x:[ID]){")) == 0);
	for (unsigned i = 0; i < 10000; i++)
		must(buf_add_str(&body, STR("a(id:$x)")) == 0);
	must(buf_add_str(&body, STR("}\",\"variables\":{\"x\":[0")) == 0);
	for (unsigned i = 0; i < 100000; i++)
		must(buf_add_str(&body, STR(",0")) == 0);
	must(buf_add_str(&body, STR("]}}")) == 0);
	check_z(check_body(buf_cstr(&body)), "<too-complex>");
	buf_clear(&body);
	must(buf_add_str(&body, STR("{\"query\":\"{user(")) == 0);
	for (unsigned i = 0; i < 257; i++)
		must(buf_printf(&body, "a%u:1 ", i) == 0);
	must(buf_add_str(&body, STR("login:1){id}}\"}")) == 0);
	check_z(check_body(buf_cstr(&body)), "<too-complex>");
}

int main(void)
{
	scope = graphql_scope_new();
	must(scope && graphql_scope_add(scope, STR(OURS), STR("Me/Mine"), 0) == 0);
	run_test(test_node_ids);
	run_test(test_repository_by_name);
	run_test(test_repository_by_variables);
	run_test(test_ids);
	run_test(test_repository_id);
	run_test(test_ids_by_variables);
	run_test(test_enumeration);
	run_test(test_adding);
	run_test(test_older_ids);
	run_test(test_paths);
	run_test(test_work_is_bounded);
	graphql_scope_free(scope);
	return tap_done();
}
