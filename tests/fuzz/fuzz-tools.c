/* fuzz-deps: filter policy base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Trims any JSON as the body of a request to the Messages API. What comes out must be left alone
 * when it is trimmed again, must hold no host that is not open, and is what went in byte for byte
 * if nothing was to be changed. What jansson reads, the filters read as well. */

#include "filter/body_json.h"
#include "filter/tools.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static struct allowlist *the_policy(void)
{
	static struct allowlist *list;

	if (!list) {
		list = allowlist_new();
		expect(list &&
			allowlist_add_yaml(list, STR("domains: [open.test, '*.wide.test']\n"), "f",
				NULL) == 0);
	}
	return list;
}

/* What a fetching tool may open, after trimming. */
static void check_tools(const json_t *tools)
{
	for (size_t i = 0; i < json_array_size(tools); i++) {
		const json_t *tool = json_array_get(tools, i);
		const json_t *domains = json_object_get(tool, "allowed_domains");
		struct str type = json_str_at(tool, "type");

		if (!str_starts(type, STR("web_fetch_")))
			continue;
		expect(json_is_array(domains));
		for (size_t k = 0; k < json_array_size(domains); k++)
			expect(tools_host_is_open(
				       the_policy(), json_str(json_array_get(domains, k))) == 1);
	}
}

/* Return whether it is not refused. */
static bool trim(json_t *body, bool *ret_changed)
{
	struct filter_result res;

	filter_result_init(&res);
	expect(tools_trim(body, the_policy(), &res, ret_changed) == 0);
	expect(!res.error == !res.message);
	expect(buf_len(&res.tag[FILTER_PLACE_TOOLS]) > 0 || !*ret_changed);
	filter_result_done(&res);
	return !res.error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(8 << 20);
	struct str text = str_make(data, size);
	json_t *body = NULL, *again = NULL;
	bool changed;

	if (tools_is_too_complex(text))
		return 0;
	if (body_json_read(text, &body) < 0) {
		expect(str_chr(text, '\0') < text.n ||
			json_text_read(text,
				JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &body,
				NULL) < 0);
		return 0;
	}
	if (trim(body, &changed)) {
		check_tools(json_object_get(body, "tools"));
		expect(body_json_write(&out, text, body) == 0);
		expect(changed || str_eq(buf_str(&out), text));
		expect(body_json_read(buf_str(&out), &again) == 0);
		expect(json_equal(body, again));
		expect(trim(again, &changed) && !changed);
	}
	json_decref(body);
	json_decref(again);
	buf_done(&out);
	return 0;
}
