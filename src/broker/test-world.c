/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/test-world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define ALLOW                                                                                      \
	"domains:\n  - \"*.test\"\n  - localhost\nurl_prefixes:\n  - host: api.narrow\n"           \
	"    path: /hello*\n    methods: [GET]\n"

struct test_ca *world_ca;
bool world_h2;
bool world_bare;

void world_start(struct world *w, const struct test_cert *cert)
{
	if (!world_ca)
		world_ca = test_ca_new("Test root");
	const struct test_cert usual = {.ca = world_ca, .dns = "*.site.test"};
	struct test_origin_config plain = {.serve = origin_serve, .arg = &w->plain_seen};
	struct test_origin_config tls = {.cert = cert ? cert : &usual,
		.serve = world_h2 ? origin_serve_h2 : origin_serve,
		.arg = &w->tls_seen,
		.h2 = world_h2};
	struct buf pem = BUF_INIT(8192);

	w->plain_seen = w->tls_seen = (struct origin_seen){.heads = BUF_INIT(8 << 20)};
	rig_start(&w->g);
	w->plain = test_origin_start(&plain);
	w->tls = test_origin_start(&tls);
	test_ca_add_pem(world_ca, &pem);
	test_need(chan_send(&w->g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&w->g, ALLOW);
	rig_connect_to(&w->g, "a.site.test", 443, test_origin_port(w->tls));
	rig_connect_to(&w->g, "b.site.test", 443, test_origin_port(w->tls));
	rig_connect_to(&w->g, "a.site.test", 80, test_origin_port(w->plain));
	rig_connect_to(&w->g, "b.site.test", 80, test_origin_port(w->plain));
	if (!world_bare)
		rig_secret(&w->g, "TOKEN", REAL, FAKE, "a.site.test", "authorization");
}

void world_stop(struct world *w)
{
	int status = rig_stop(&w->g);

	test_need(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_origin_stop(w->plain);
	test_origin_stop(w->tls);
	buf_done(&w->plain_seen.heads);
	buf_done(&w->tls_seen.heads);
}

bool world_seen(const struct origin_seen *o, const char *text)
{
	return str_find(buf_str(&o->heads), str_from(text)) < buf_len(&o->heads);
}

bool world_log_has(const struct world *w, bool json, const char *text)
{
	char *log = rig_log(&w->g, json);
	bool has = strstr(log, text) != NULL;

	free(log);
	return has;
}

bool world_gets(struct world *w, const struct ask *a, const char *body)
{
	struct got r;
	bool ok;

	rig_ask(&w->g, a, &r);
	ok = r.status == 200 && r.ended && str_eq(buf_str(&r.text), str_from(body));
	if (!ok)
		printf("# %s: status %u: %.*s\n", a->target, r.status, STR_FMT(buf_str(&r.text)));
	got_done(&r);
	return ok;
}

void world_serve(struct world *w)
{
	world_start(w, NULL);
	rig_serve(&w->g);
}

bool world_fetches(struct world *w, const char *target, const char *body)
{
	return world_gets(w, &(struct ask){HTTPS, .target = target}, body);
}
