/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the tools filter to the chain: text in, text out. */
#include "filter/body_json.h"
#include "filter/filter_internal.h"
#include "filter/tools.h"
#include "policy/path.h"

#include <errno.h>

/* Anthropic's Messages API, in any spelling of its path. */
static int tools_selects(const struct filter_request *req)
{
	_cleanup_(path_done) struct path path = {0};
	struct host host;
	int r;

	if (host_parse(req->asked->host, &host) < 0 ||
		!str_eq(host_str(&host), STR("api.anthropic.com")))
		return 0;
	r = path_parse(req->asked->target, &path);
	if (r < 0)
		return r;
	return path.problem != PATH_OK || path.unsure != PATH_OK || path.encoded_slash ||
	       req->asked->other_path || path_may_be(path.decoded, STR("/v1/messages"), true);
}

static int tools_unreadable(struct filter_result *res, struct str detail)
{
	bool large = str_eq(detail, STR("<too-large>"));

	return filter_refuse(res, large ? "tool_config_too_large" : "tool_config_invalid",
		large ? "This request is too large to be judged, so it is refused."
		      : "This request cannot be read as JSON, so its tools cannot be judged.",
		detail);
}

/* With a charset other than UTF-8, the origin might read another text than we do. */
static bool is_other_charset(const struct http_fields *f)
{
	struct str value = http_fields_get(f, STR("content-type"));

	if (http_fields_count(f, STR("content-type")) > 1)
		return true;
	for (size_t i = 0; i + 8 <= value.n; i++) {
		struct str rest = str_from_index(value, i + 8);

		if (!str_ieq(str_make(value.p + i, 8), STR("charset=")))
			continue;
		rest = str_trim(str_prefix(rest, str_chr(rest, ';')));
		return !str_ieq(rest, STR("utf-8")) && !str_ieq(rest, STR("\"utf-8\""));
	}
	return false;
}

static int write_back(struct str body, const json_t *value, struct filter_result *res)
{
	struct buf text = BUF_INIT(2 * TOOLS_BODY_MAX);
	int r = body_json_write(&text, body, value);

	if (r < 0) {
		buf_done(&text);
		return r;
	}
	buf_done(&res->body); /* the decoded body, if there is one */
	res->body = text;
	res->changed = true;
	return 0;
}

static int tools_run(const struct filter_request *req, struct str body, struct filter_result *res)
{
	_cleanup_json_ json_t *value = NULL;
	bool changed = false;
	int r;

	if (req->asked->websocket)
		return tools_unreadable(res, STR("<websocket>"));
	if (body.n == 0)
		return 0; /* such as a GET of a batch: nothing is asked for */
	if (is_other_charset(&req->head->fields))
		return tools_unreadable(res, STR("<content-type>"));
	if (tools_is_too_complex(body))
		return tools_unreadable(res, STR("<too-large>"));
	r = body_json_read(body, &value);
	if (r == -EEXIST || r == -EINVAL)
		return tools_unreadable(
			res, r == -EEXIST ? STR("<duplicate-key>") : STR("<invalid-json>"));
	if (r == 0)
		r = tools_trim(value, req->policy, res, &changed);
	return r == 0 && changed && !res->error ? write_back(body, value, res) : r;
}

static int tools_stands(_unused_ const struct filter_request *was, const struct filter_request *now,
	const struct filter_relies *relies)
{
	return relies->more ? 0 : tools_are_open(now->policy, buf_str(&relies->list));
}

const struct body_filter filter_tools = {
	.name = "tools",
	.body_max = TOOLS_BODY_MAX,
	.selects = tools_selects,
	.run = tools_run,
	.stands = tools_stands,
	.unreadable = tools_unreadable,
};
