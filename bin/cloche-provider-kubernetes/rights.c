/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the cluster is asked about all rights by one run of kubectl (a list of
 * SelfSubjectAccessReview), and about its version by another one at the same time. */
#include "rights.h"
#include "base/clock.h"
#include "podstate.h"

#include <stdio.h>
#include <string.h>

enum { ASK_SEC = 20, TEXT_MAX = 64 * 1024 };

static const struct rights_row {
	const char *group, *resource, *sub, *verb;
	bool wanted; /* rooms can be made without it */
} rights_rows[] = {
	{"", "pods", "", "create", false},
	{"", "pods", "", "get", false},
	{"", "pods", "", "list", false},
	{"", "pods", "", "watch", false},
	{"", "pods", "", "delete", false},
	{"", "pods", "exec", "create", false},
	{"networking.k8s.io", "networkpolicies", "", "create", true},
};

static json_t *rights_questions(const struct kubectl *k)
{
	_cleanup_json_ json_t *items = json_array();

	for (size_t i = 0; items && i < ARRAY_SIZE(rights_rows); i++) {
		const struct rights_row *row = &rights_rows[i];

		if (json_array_append_new(items,
			    json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s}}}", "apiVersion",
				    "authorization.k8s.io/v1", "kind", "SelfSubjectAccessReview",
				    "spec", "resourceAttributes", "namespace", k->space, "group",
				    row->group, "resource", row->resource, "subresource", row->sub,
				    "verb", row->verb)) < 0)
			return NULL;
	}
	return json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", items);
}

static bool rights_is_about(const json_t *answer, const struct rights_row *row)
{
	const json_t *a = json_object_get(json_object_get(answer, "spec"), "resourceAttributes");

	return str_eq(json_str_at(a, "resource"), str_from(row->resource)) &&
	       str_eq(json_str_at(a, "subresource"), str_from(row->sub)) &&
	       str_eq(json_str_at(a, "verb"), str_from(row->verb));
}

static bool rights_has(const json_t *answers, const struct rights_row *row)
{
	for (size_t i = 0; i < json_array_size(answers); i++) {
		const json_t *one = json_array_get(answers, i);

		if (rights_is_about(one, row))
			return json_is_true(
				json_object_get(json_object_get(one, "status"), "allowed"));
	}
	return false;
}

/* Several values, one behind the other. */
static json_t *rights_read(struct buf *text)
{
	_cleanup_json_ json_t *all = json_array();
	struct str one;

	while (all && podstate_take(text, &one)) {
		json_t *value = NULL;

		if (json_text_read(one, 0, &value, NULL) < 0)
			return NULL;
		if (json_is_array(json_object_get(value, "items"))) {
			(void)!json_array_extend(all, json_object_get(value, "items"));
			json_decref(value);
		} else if (json_array_append_new(all, value) < 0) {
			return NULL;
		}
	}
	return TAKE_PTR(all);
}

static int rights_judge(const struct kubectl *k, const json_t *answers, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(rights_rows); i++) {
		const struct rights_row *row = &rights_rows[i];

		if (rights_has(answers, row))
			continue;
		if (row->wanted) {
			printf("hint NetworkPolicies may not be made in namespace %s: rooms have "
			       "their own walls alone\n",
				k->space);
			return 0;
		}
		err_set(err, E_PERMISSION, "you may not %s %s%s%s in namespace %s", row->verb,
			row->resource, row->sub[0] ? "/" : "", row->sub, k->space);
		err_hint(err, "docs/kubernetes/role.yaml has the rights that are needed; who runs "
			      "the cluster can grant them");
		return -E_PERMISSION;
	}
	puts("hint no pod was made; \"cloche run\" with the same --provider and --place tries it");
	return 0;
}

static void rights_say_version(const struct buf *text)
{
	_cleanup_json_ json_t *version = NULL;
	char said[64];

	if (json_text_read(buf_str(text), 0, &version, NULL) < 0)
		return;
	podstate_show(json_str_at(version, "gitVersion"), said, sizeof(said));
	printf("version %s\n", said);
}

int rights_check(struct kubectl *k, struct cloche_err *err)
{
	static const char *const ask[] = {
		"create", "--validate=false", "--output=json", "--filename=-", NULL};
	static const char *const about[] = {"get", "--raw", "/version", NULL};
	_cleanup_(kubectl_endp) struct kubectl_run rights = KUBECTL_RUN_NONE;
	_cleanup_(kubectl_endp) struct kubectl_run version = KUBECTL_RUN_NONE;
	struct kubectl_run *const runs[] = {&rights, &version};
	_cleanup_(buf_donep) struct buf text = BUF_INIT(TEXT_MAX);
	_cleanup_json_ json_t *questions = NULL, *answers = NULL;
	uint64_t until = clock_mono_usec() + ASK_SEC * USEC_PER_SEC;
	int r = kubectl_settle(k, err);

	if (r < 0)
		return r;
	questions = rights_questions(k);
	if (!questions || json_text_write(&text, questions, JSON_TEXT_COMPACT) < 0)
		return err_nomem(err);
	r = kubectl_begin(k, ask, buf_str(&text), &rights, err);
	if (r == 0)
		r = kubectl_begin(k, about, STR_NULL, &version, err);
	if (r < 0)
		return r;
	while (r == 0 && (!rights.ended || !version.ended))
		r = kubectl_turn(runs, ARRAY_SIZE(runs), until);
	if (r < 0 || rights.status != 0)
		return kubectl_fail(k, &rights, err);
	answers = rights_read(&rights.out);
	if (!answers)
		return err_set(err, E_PROTOCOL, "kubectl create: what it says is no JSON");
	rights_say_version(&version.out);
	return rights_judge(k, answers, err);
}
