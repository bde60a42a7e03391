/* fuzz-deps: filter policy base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a GraphQL document, and as the body of a request. What the parser took must be
 * a tree: parts lie inside what they are part of, one behind the other, and every text is in the
 * source or in the document's own memory. Then operations and repositories are judged. */

#include "filter/filter_internal.h"
#include "filter/graphql_scope.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static bool lies_in(struct str s, const char *p, size_t n)
{
	return s.n == 0 || (p && s.p >= p && s.n <= n && s.p - p <= (ptrdiff_t)(n - s.n));
}

static void check_text(const struct gql_doc *doc, struct str source, struct str text)
{
	expect(lies_in(text, source.p, source.n) || lies_in(text, doc->text, doc->text_n));
}

static void check_parts(const struct gql_doc *doc, uint32_t parent)
{
	uint32_t end = parent == GQL_NONE ? doc->n : doc->node[parent].end, at;

	at = parent == GQL_NONE ? 0 : parent + 1;
	for (uint32_t i = gql_first(doc, parent); i != GQL_NONE; i = gql_next(doc, i)) {
		expect(i == at && doc->node[i].parent == parent);
		expect(doc->node[i].end > i && doc->node[i].end <= end);
		at = doc->node[i].end;
	}
	expect(at == end);
}

static void check_document(struct str source)
{
	struct gql_doc doc;

	if (gql_parse(source, &doc) < 0) {
		expect(doc.n == 0);
	} else {
		expect(doc.n > 1 && doc.text_n <= source.n);
		check_parts(&doc, GQL_NONE);
		for (uint32_t i = 0; i < doc.n; i++) {
			check_parts(&doc, i);
			check_text(&doc, source, doc.node[i].name);
			check_text(&doc, source, doc.node[i].text);
		}
	}
	gql_doc_done(&doc);
}

static void judge(const struct allow_rule *rule, const struct graphql_scope *scope,
	const struct graphql_request *req)
{
	struct buf tag = BUF_INIT(2 << 20), detail = BUF_INIT(2 << 20);
	int r = graphql_operations_judge(rule, req, &tag, &detail);

	expect(r == 0 || r == 1);
	expect(buf_len(&tag) > 0 && buf_len(&detail) > 0);
	buf_clear(&detail);
	r = graphql_scope_check(scope, req, &detail);
	expect(r == 0 || (r == 1 && buf_len(&detail) > 0));
	expect(buf_len(&detail) <= GRAPHQL_SCOPE_DETAIL_MAX);
	buf_done(&tag);
	buf_done(&detail);
}

static void check_request(struct str body)
{
	static struct allowlist *list;
	static struct graphql_scope *scope;
	struct graphql_request req;
	const char *problem;

	if (!list) {
		list = allowlist_new();
		scope = graphql_scope_new();
		expect(list && scope);
		expect(allowlist_add_yaml(list,
			       STR("url_prefixes:\n- {host: a.b, graphql: {queries: ['a*']}}\n"),
			       "f", NULL) == 0);
		expect(graphql_scope_add(scope, STR("R_kgDORH34qw"), STR("a/b"), 0) == 0);
	}
	expect(graphql_request_read(body, &req, &problem) == 0);
	expect(problem || req.operation < req.doc.n);
	if (!problem)
		judge(allowlist_rule(list, 0), scope, &req);
	graphql_request_done(&req);
}

/* The same document in the body of a request, so that it is judged. */
static void check_wrapped(struct str source)
{
	json_t *body = json_object(), *text = json_stringn(source.p, source.n);
	struct buf out = BUF_INIT(8 << 20);

	if (body && text && json_object_set_new(body, "query", text) == 0) {
		expect(json_text_write(&out, body, 0) == 0);
		check_request(buf_str(&out));
	}
	json_decref(body);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = str_make(data, size);
	uint64_t id;

	check_document(bytes);
	check_request(bytes);
	if (size > 0)
		check_wrapped(bytes);
	expect(graphql_node_repository(bytes, &id) <= 1);
	return 0;
}
