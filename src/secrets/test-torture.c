/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/replace.h"
#include "secrets/scrub.h"

#include "tap.h"
#include "torture.h"

#include <errno.h>

static void replace(const struct secret_set *set)
{
	static const struct header_view headers[] = {{STR("Authorization"), STR("foreign")},
		{STR("authorization"), STR("Basic eDpmYWtlLXZhbHVl")}, /* x:fake-value */
		{STR("x-key"), STR("foreign")}, {STR("cookie"), STR("fake-value")}};
	struct host host;
	struct replace_request req = {true, &host, headers, ARRAY_SIZE(headers)};
	struct replace_result res;
	int r;

	must(host_parse(STR("x.com"), &host) == 0);
	r = replace_headers(set, &req, &res);
	check_int(r, torture_failed ? -ENOMEM : 0);
	if (r == 0) {
		check_str(buf_str(&res.edits[0].value), "Basic eDpyZWFsLXZhbHVl");
		check(res.masked == 1 && res.dropped == 1 && res.collapsed == 1);
		check_int(res.n_notes, 3);
	}
	replace_result_done(&res);
}

static void scrub(const struct secret_set *set)
{
	_cleanup_(scrubber_freep) struct scrubber *s = NULL;
	_cleanup_(scrub_freep) struct scrub *stream = NULL;
	char text[] = "real-value";
	struct str first, second;
	int r = scrubber_new(set, &s, NULL);

	check_int(r, torture_failed ? -E_NO_MEMORY : 0);
	if (r < 0)
		return;
	stream = scrub_new(s);
	check(!stream == torture_failed);
	if (!stream)
		return;
	scrub_feed(stream, text, 10, &first, &second);
	check_str(second, "fake-value");
}

static void use_secrets(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	int r;

	if (!set) {
		check(torture_failed);
		return;
	}
	r = secret_spec_parse(STR("A=B@x.com,*.y.com:authorization,x-key"), &spec, NULL);
	check_int(r, torture_failed ? -E_NO_MEMORY : 0);
	if (r < 0)
		return;
	r = secret_set_add(set, &spec, STR("real-value"), STR("fake-value"), NULL);
	check_int(r, torture_failed ? -E_NO_MEMORY : 0);
	check_int(secret_set_count(set), r < 0 ? 0 : 1);
	if (r < 0)
		return;
	replace(set);
	if (!torture_failed)
		scrub(set);
}

static void test_torture(void)
{
	torture(use_secrets);
}

int main(void)
{
	run_test(test_torture);
	return tap_done();
}
