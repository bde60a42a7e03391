/* fuzz-deps: base policy */
/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as an allowlist, and what was read must hold what the reader promises. Then each
 * rule is asked for requests that are made from the same bytes: an answer must come, an explanation
 * must be printable, and a suggestion must be an allowlist that allows the request. */

#include "policy/decide.h"

#include <stdint.h>

/* Enough for every shape of rule, and quick. */
#define RULES_MAX 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void check_rule(const struct allow_rule *rule)
{
	expect(rule->host && rule->host[0] && strlen(rule->host) <= HOST_MAX);
	expect(rule->label && rule->schemes);
	expect(!(rule->path && rule->path_prefix));
	expect(!rule->tunnel || (!rule->path && !rule->path_prefix && !rule->methods));
	for (size_t i = 0; i < rule->n_ports; i++)
		expect(rule->ports[i] != 0);
}

static void check_suggestion(const struct allowlist *list, const struct policy_request *req,
	const struct verdict *v, struct buf *yaml)
{
	struct allowlist *fixed = allowlist_new();
	struct verdict again;

	expect(fixed && policy_suggest(list, req, v, yaml) == 0);
	if (buf_len(yaml) > 0) {
		expect(allowlist_add_yaml(fixed, buf_str(yaml), "s", NULL) == 0);
		expect(allowlist_count(fixed) == 1);
		expect(policy_decide(fixed, req, &again) == 0 && again.allow);
	}
	allowlist_free(fixed);
}

static void ask(const struct allowlist *list, struct str host, struct str bytes)
{
	struct buf text = BUF_INIT(32768), yaml = BUF_INIT(32768);
	size_t newline = str_chr(bytes, '\n');
	struct policy_request req = {
		.scheme = bytes.n % 3 ? POLICY_HTTPS : POLICY_HTTP,
		.host = host,
		.port = bytes.n % 3 ? 443 : 80,
		.method = str_prefix(bytes, newline),
		.target = str_from_index(bytes, newline + 1),
	};
	struct verdict v;

	expect(policy_decide(list, &req, &v) == 0);
	expect(v.allow == (v.reason == POLICY_ALLOWED));
	expect(policy_explain(&req, &v, &text) == 0);
	for (size_t i = 0; i < buf_len(&text); i++)
		expect(buf_data(&text)[i] >= 0x20 && buf_data(&text)[i] < 0x7f);
	check_suggestion(list, &req, &v, &yaml);
	buf_done(&text);
	buf_done(&yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_make(data, size);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct allowlist *list = allowlist_new();
	size_t tail = size > 64 ? size - 64 : 0;

	expect(list != NULL);
	if (allowlist_add_yaml(list, text, "f", &err) < 0)
		expect(allowlist_count(list) == 0 && err.code && err.message[0]);
	if (allowlist_add_host(list, str_from_index(text, tail), &err) < 0)
		expect(err.code && err.message[0]);
	for (size_t i = 0; i < allowlist_count(list) && i < RULES_MAX; i++) {
		check_rule(allowlist_rule(list, i));
		ask(list, str_from(allowlist_rule(list, i)->host), str_from_index(text, tail));
	}
	ask(list, STR("a.b.c"), text);
	allowlist_free(list);
	return 0;
}
