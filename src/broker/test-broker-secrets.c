/* SPDX-License-Identifier: Apache-2.0 */
/* Where a real value goes and where it never goes (INV-SECRET-SCOPE, INV-NO-SECRET-INSIDE); whom
 * the broker talks to, by which addresses and on which connections (INV-ONE-HOST,
 * INV-ADDRESS-CHECKED). */
#include "broker/test-world.h"

#include <stdio.h>
#include <tap.h>
#include <unistd.h>

static struct test_ca *stranger;

static void test_secret(void)
{
	struct world w;
	const char *auth = "Bearer " FAKE;

	world_start(&w, NULL);
	rig_serve(&w.g);
	/* Basic user:FAKE and user:REAL */
	const char *basic_fake = "Basic dXNlcjpzay1mYWtlLUFCQ0RFRkdISUpLTE1OT1A=";
	const char *basic_real = "Basic dXNlcjpzay1yZWFsLTAxMjM0NTY3ODlhYmNkZWY=";
	struct ask a = {.scheme = NET_HTTPS,
		.host = "a.site.test",
		.target = "/hello",
		.fields = {"Authorization", auth, "Accept-Encoding", "gzip, br"}};

	check(world_gets(&w, &a, "hello"));
	check(world_seen(&w.tls_seen, "Authorization: Bearer " REAL "\r\n"));
	check(world_seen(&w.tls_seen, "Accept-Encoding: gzip, br\r\n"));
	check(!world_seen(&w.tls_seen, FAKE));
	check(world_log_has(&w, false, "[masked: 1]"));

	a.fields[1] = basic_fake;
	check(world_gets(&w, &a, "hello"));
	check(world_seen(&w.tls_seen, basic_real));

	/* Another host, another scheme: only ever the surrogate. */
	buf_clear(&w.tls_seen.heads);
	a.fields[1] = auth;
	a.host = "b.site.test";
	check(world_gets(&w, &a, "hello"));
	check(world_seen(&w.tls_seen, FAKE) && !world_seen(&w.tls_seen, REAL));
	check(world_seen(&w.tls_seen, "Accept-Encoding: gzip, br\r\n"));
	a.host = "a.site.test";
	a.scheme = NET_HTTP;
	check(world_gets(&w, &a, "hello"));
	check(w.plain_seen.requests == 1 && !world_seen(&w.plain_seen, REAL));
	check(world_log_has(&w, false, "WARNING: TOKEN not put into header 'authorization'"));

	/* Someone else's credential does not go to the secret's host. */
	buf_clear(&w.tls_seen.heads);
	a.scheme = NET_HTTPS;
	a.fields[1] = "Bearer stolen";
	check(world_gets(&w, &a, "hello"));
	check(!world_seen(&w.tls_seen, "stolen"));
	check(world_log_has(
		&w, false, "STRIPPED header 'authorization' from GET https://a.site.test/hello"));
	check(!world_log_has(&w, false, REAL) && !world_log_has(&w, true, REAL));
	world_stop(&w);
}

static void test_echo_scrubbed(void)
{
	static const char *const targets[] = {"/echo", "/split"};
	struct world w;
	struct got r;
	struct ask a = {.scheme = NET_HTTPS,
		.host = "a.site.test",
		.fields = {"Authorization", "Bearer " FAKE}};

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		a.target = targets[i];
		rig_ask(&w.g, &a, &r);
		check(r.status == 200 && r.ended);
		check(got_has(&r, FAKE) && !got_has(&r, REAL));
		check(got_has(&r, "\r\n\r\n")); /* to the end */
		got_done(&r);
	}
	check(world_seen(&w.tls_seen, REAL));
	a.target = "/echohead";
	rig_ask(&w.g, &a, &r);
	check(got_field(&r, "X-Seen: Bearer " FAKE) && !got_field(&r, REAL));
	got_done(&r);
	check(world_log_has(&w, false, "[scrubbed: 1]"));
	world_stop(&w);
}

static void test_reuse(void)
{
	struct world w;
	struct ask a = {.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"};

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (int i = 0; i < 10; i++)
		check(world_gets(&w, &a, "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	a.host = "b.site.test"; /* the same address, but not the same host */
	check(world_gets(&w, &a, "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	check_int(test_origin_resumed(w.tls), 0);
	a.target = "/once";
	for (int i = 0; i < 5; i++) {
		check(world_gets(&w, &a, "hello"));
		usleep(20000); /* the close arrives */
	}
	check_int(test_origin_accepted(w.tls), 6);
	check_int(test_origin_resumed(w.tls), 4);
	world_stop(&w);
}

/* The origin gives up a connection at the moment of the next request. */
static void test_retry(void)
{
	struct world w;
	struct got r = {0};
	struct ask a = {.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	check(world_gets(&w, &a, "hello"));
	a.target = "/die";
	check(world_gets(&w, &a, "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	a.method = "PUT";
	a.body = NET_BODY_LENGTH;
	a.length = 4;
	id = rig_open(&w.g, &a);
	rig_data(&w.g, id, "data", 4);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && got_has(&r, "hello"));
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 3);
	/* What may not be done twice is not. */
	a.method = "POST";
	a.body = NET_BODY_NONE;
	a.length = 0;
	rig_ask(&w.g, &a, &r);
	check_int(r.status, 502);
	check(got_has(&r, "upstream_closed"));
	got_done(&r);
	world_stop(&w);
}

/* What is unpacked is as long as its connection, too: without a proper end nobody knows that. */
static void test_cut_encoded(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.scheme = NET_HTTPS, .host = "a.site.test", .target = "/gzip"},
		&r);
	check(r.status == 200 && r.reset && !r.ended);
	check_str(buf_str(&r.text), "hello");
	got_done(&r);
	world_stop(&w);
}

static void test_certificates(void)
{
	const struct {
		struct test_cert cert;
		const char *text;
	} table[] = {
		{{.ca = world_ca, .dns = "a.site.test", .from = -7200, .to = -3600}, "expired"},
		{{.ca = world_ca, .dns = "c.site.test"}, "hostname"},
		{{.cn = "a.site.test", .dns = "a.site.test"}, "self-signed"},
		{{.ca = stranger, .dns = "a.site.test"}, "unable to get"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct world w;
		struct got r;

		world_start(&w, &table[i].cert);
		rig_serve(&w.g);
		rig_ask(&w.g,
			&(struct ask){.scheme = NET_HTTPS,
				.host = "a.site.test",
				.target = "/hello",
				.fields = {"Authorization", "Bearer " FAKE}},
			&r);
		check_int(r.status, 502);
		check(got_has(&r, "upstream_certificate") && got_has(&r, table[i].text));
		check(!got_has(&r, REAL));
		check_int(w.tls_seen.requests, 0);
		check(world_log_has(&w, false, "ERROR GET https://a.site.test/hello -> "));
		check(!world_log_has(&w, true, "\"masked\":")); /* no value went out */
		got_done(&r);
		world_stop(&w);
	}
}

static void test_addresses(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .target = "/"}, &r);
	check_int(r.status, 403); /* which nobody tries again */
	check(got_has(&r, "address_refused") && got_has(&r, "address of this host"));
	check(got_has(&r, "how_to_allow") && got_has(&r, "host: \\\"localhost\\\"\\n") &&
		got_has(&r, "allow_private: [\\\""));
	got_done(&r);
	check(world_log_has(&w, false, "BLOCKED GET http://localhost/ -> 403"));
	rig_ask(&w.g, &(struct ask){.host = "127.0.0.1", .target = "/"}, &r);
	check_int(r.status, 403); /* no rule writes it out */
	got_done(&r);
	world_stop(&w);
}

/* Whoever follows the advice opens an address, and nothing else. */
static void test_advice_keeps_the_entry(void)
{
	static const char *const lines[] = {"    path: \\\"/a \\\\\\\"b*\\\"\\n",
		"    query: none\\n", "    schemes: [http]\\n", "    encoded_slash: true\\n",
		"    websocket: false\\n", "    scrub: false\\n", "    ports: [8080, 8081]\\n",
		"    allow_private: [\\\"10.0.0.0/8\\\", \\\""};
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_allow(&w.g, "url_prefixes:\n"
			"  - {host: localhost, path: '/a \"b*', query: none, schemes: [http],\n"
			"     ports: [8080, 8081], encoded_slash: true, websocket: false,\n"
			"     scrub: false, allow_private: [10.0.0.0/8]}\n");
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .port = 8080, .target = "/a%20%22b"}, &r);
	check(r.status == 403 && got_has(&r, "address_refused"));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check(got_has(&r, lines[i]));
	got_done(&r);
	world_stop(&w);
}

static void test_unreachable(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_connect_to(&w.g, "c.site.test", 80, 1); /* nobody listens there */
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "c.site.test", .target = "/"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "upstream_unreachable") && got_has(&r, "refused"));
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	world_ca = test_ca_new("Test root");
	stranger = test_ca_new("Stranger");
	run_test(test_secret);
	run_test(test_echo_scrubbed);
	run_test(test_reuse);
	run_test(test_retry);
	run_test(test_cut_encoded);
	run_test(test_certificates);
	run_test(test_addresses);
	run_test(test_advice_keeps_the_entry);
	run_test(test_unreachable);
	test_ca_free(world_ca);
	test_ca_free(stranger);
	return tap_done();
}
