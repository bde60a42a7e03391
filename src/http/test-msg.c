/* SPDX-License-Identifier: Apache-2.0 */
#include "http/msg.h"

#include <errno.h>
#include <tap.h>
#include <torture.h>

static void names_are_known(void)
{
	static const struct {
		const char *name;
		enum http_field_id id;
	} cases[] = {
		{"Host", HTTP_F_HOST},
		{"hOST", HTTP_F_HOST},
		{"Hosts", HTTP_F_OTHER},
		{"", HTTP_F_OTHER},
		{"Content-Length", HTTP_F_CONTENT_LENGTH},
		{"Content-Lengt", HTTP_F_CONTENT_OTHER},
		{"content-type", HTTP_F_CONTENT_OTHER},
		{"Content-", HTTP_F_OTHER},
		{"X-Amz-Date", HTTP_F_X_AMZ},
		{"X-Amzn", HTTP_F_OTHER},
		{"Set-Cookie", HTTP_F_COOKIE},
		{"te", HTTP_F_TE},
		{"Transfer-Encoding", HTTP_F_TRANSFER_ENCODING},
		{"Transfer_Encoding", HTTP_F_OTHER},
		{"Proxy-Authorization", HTTP_F_PROXY_AUTH},
		{"HTTP2-Settings", HTTP_F_HTTP2_SETTINGS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_int(http_field_id(str_from(cases[i].name)), cases[i].id);
}

static void fields_are_edited(void)
{
	_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;

	check(http_fields_get(&f, STR("a")).p == NULL);
	check_int(http_fields_add(&f, STR("A"), STR("1")), 0);
	check_int(http_fields_add(&f, STR("B"), STR("2")), 0);
	check_int(http_fields_add(&f, STR("a"), STR("3")), 0);
	check_int(http_fields_count(&f, STR("A")), 2);
	check_str(http_fields_get(&f, STR("a")), "1");
	check_int(http_fields_find(&f, STR("a"), 1), 2);
	check_int(http_fields_find(&f, STR("c"), 0), -1);
	check_int(http_fields_set(&f, STR("a"), STR("4")), 0);
	check_int(f.n, 2);
	check_str(http_fields_name(&f, 0), "A");
	check_str(http_fields_value(&f, 0), "4");
	check_int(http_fields_set(&f, STR("C"), STR("5")), 0);
	check_int(f.n, 3);
	check_int(http_fields_set_at(&f, 1, STR("")), 0);
	check_str(http_fields_get(&f, STR("b")), "");
	http_fields_remove_at(&f, 0);
	check_str(http_fields_name(&f, 0), "B");
	check_int(http_fields_remove(&f, STR("c")), 1);
	check_int(http_fields_remove(&f, STR("c")), 0);
	check_int(f.n, 1);
	http_fields_clear(&f);
	check_int(f.n, 0);
}

static void bad_fields_are_refused(void)
{
	_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;

	check_int(http_fields_add(&f, STR("A"), STR("a\r\nb")), -EINVAL);
	check_int(http_fields_add(&f, STR("A"), STR(" a")), -EINVAL);
	check_int(http_fields_add(&f, STR("A b"), STR("a")), -EINVAL);
	check_int(http_fields_add(&f, STR(""), STR("a")), -EINVAL);
	check_int(http_fields_add(&f, STR("A"), STR("a")), 0);
	check_int(http_fields_set(&f, STR("A"), STR("\n")), -EINVAL);
	check_int(http_fields_set_at(&f, 0, STR("\0")), -EINVAL);
	check_str(http_fields_get(&f, STR("A")), "a");
	check_int(f.n, 1);
}

static void sizes(void)
{
	static char x[HTTP_LINE_MAX];
	struct http_fields f = HTTP_FIELDS_INIT;

	memset(x, 'x', sizeof(x));
	check(http_fields_fit(&f, 0));
	must(http_fields_add(&f, STR("ab"), STR("c")) == 0);
	check(http_fields_fit(&f, 7) && !http_fields_fit(&f, 6));
	must(http_fields_add(&f, STR("d"), STR("")) == 0);
	check(http_fields_fit(&f, 12) && !http_fields_fit(&f, 11));
	/* What was replaced does not count. */
	must(http_fields_set(&f, STR("d"), STR("e")) == 0);
	check(http_fields_fit(&f, 13) && !http_fields_fit(&f, 12));
	must(http_fields_set(&f, STR("d"), str_make(x, HTTP_LINE_MAX - 3)) == 0);
	check(http_fields_fit(&f, HTTP_HEAD_MAX));
	must(http_fields_set(&f, STR("d"), str_make(x, HTTP_LINE_MAX - 2)) == 0);
	check(!http_fields_fit(&f, HTTP_HEAD_MAX));
	http_fields_done(&f);
}

static void limits(void)
{
	_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;
	_cleanup_(freep) char *big = malloc(HTTP_VALUE_MAX);
	int r = 0;

	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		check_int(http_fields_add(&f, STR("A"), STR("a")), 0);
	check_int(http_fields_add(&f, STR("A"), STR("a")), -E2BIG);
	check_int(f.n, HTTP_FIELDS_MAX);
	must(big);
	memset(big, 'x', HTTP_VALUE_MAX);
	for (int i = 0; i < 100 && r == 0; i++)
		r = http_fields_set_at(&f, 0, str_make(big, HTTP_VALUE_MAX));
	check_int(r, -E2BIG);
	check(f.text.cap <= HTTP_STORE_MAX);
	/* A large message does not make every later one large. */
	http_fields_clear(&f);
	check_int(f.text.cap, 0);
}

/* Views into the same head as arguments, while its storage moves. */
static void arguments_may_be_views(void)
{
	_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;
	char value[700];

	memset(value, 'v', sizeof(value));
	check_int(http_fields_add(&f, STR("First"), str_make(value, sizeof(value))), 0);
	for (int i = 0; i < 60; i++)
		check_int(http_fields_add(
				  &f, http_fields_name(&f, 0), http_fields_value(&f, (unsigned)i)),
			0);
	for (unsigned i = 0; i < f.n; i++) {
		check_str(http_fields_name(&f, i), "First");
		check(str_eq(http_fields_value(&f, i), str_make(value, sizeof(value))));
	}
	check_int(http_fields_set_at(&f, 1, STR("other")), 0);
	check_int(http_fields_set(&f, http_fields_name(&f, 3), http_fields_value(&f, 1)), 0);
	check_int(f.n, 1);
	check_str(http_fields_value(&f, 0), "other");
}

static void copies_leave_out_what_is_hop_by_hop(void)
{
	_cleanup_(http_fields_donep) struct http_fields a = HTTP_FIELDS_INIT, b = HTTP_FIELDS_INIT;

	check_int(http_fields_add(&a, STR("Connection"), STR("x")), 0);
	check_int(http_fields_add(&a, STR("A"), STR("1")), 0);
	check_int(http_fields_add(&a, STR("TE"), STR("x")), 0);
	check_int(http_fields_add(&a, STR("B"), STR("2")), 0);
	check_int(http_fields_copy(&b, &a), 0);
	check_int(b.n, 2);
	check_str(http_fields_get(&b, STR("b")), "2");
}

static void requests_from_parts(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

	check_int(http_head_set_request(&h, STR("GET"), STR("https"), STR("a"), 443, STR("/x")), 0);
	check_str(http_head_method(&h), "GET");
	check_str(http_head_scheme(&h), "https");
	check_str(http_head_host(&h), "a");
	check_str(http_head_target(&h), "/x");
	check_int(h.port, 443);
	check(h.is_request && h.version == HTTP_11 && h.flags == HTTP_KEEP_ALIVE);
	check_int(http_head_set_request(&h, STR("G T"), STR(""), STR("a"), 0, STR("/")), -EINVAL);
	check_int(
		http_head_set_request(&h, STR("GET"), STR("a b"), STR("a"), 0, STR("/")), -EINVAL);
	check_int(http_head_set_request(&h, STR("GET"), STR(""), STR("a\r"), 0, STR("/")), -EINVAL);
	check_int(http_head_set_request(&h, STR("GET"), STR(""), STR(""), 0, STR("/")), -EINVAL);
	check_int(http_head_set_request(&h, STR("GET"), STR(""), STR("a"), 0, STR("x")), -EINVAL);
	check_int(http_head_set_request(&h, STR("GET"), STR(""), STR("a"), 0, STR("/ ")), -EINVAL);
	check_int(http_head_set_request(&h, STR("TRACE"), STR(""), STR("a"), 0, STR("/")), 0);
	check(h.flags & HTTP_TRACE);
	check_int(http_head_set_target(&h, STR("/\n")), -EINVAL);
	check_str(http_head_target(&h), "/");
	check_str(http_head_reason(&h), "");
	http_head_clear(&h);
	check_str(http_head_method(&h), "");
}

static void without_memory(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	char value[900];
	int r;

	memset(value, 'v', sizeof(value));
	r = http_head_set_request(&h, STR("GET"), STR(""), STR("a"), 0, STR("/"));
	for (int i = 0; i < 40 && r == 0; i++) {
		unsigned before = h.fields.n;
		size_t bytes = buf_len(&h.fields.text);

		r = http_fields_add(&h.fields, STR("Name"), str_make(value, sizeof(value)));
		if (r < 0) {
			check_int(h.fields.n, before);
			check_int(buf_len(&h.fields.text), bytes);
		}
	}
	check_int(r, torture_failed ? -ENOMEM : 0);
}

static void memory_runs_out(void)
{
	torture(without_memory);
}

int main(void)
{
	run_test(names_are_known);
	run_test(fields_are_edited);
	run_test(bad_fields_are_refused);
	run_test(limits);
	run_test(sizes);
	run_test(arguments_may_be_views);
	run_test(copies_leave_out_what_is_hop_by_hop);
	run_test(requests_from_parts);
	run_test(memory_runs_out);
	return tap_done();
}
