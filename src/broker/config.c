/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the client's frames are applied as they come; the first that is wrong ends
 * the broker with an answer that says what to change. After DONE the channel stays open: its end
 * means that the client went away, which is not the end of a detached sandbox. */
#include "broker/config.h"
#include "base/fd.h"
#include "base/strv.h"
#include "broker/aws.h"
#include "broker/broker_internal.h"
#include "broker/github.h"
#include "broker/offline.h"
#include "broker/renew.h"
#include "github/app.h"
#include "http/msg.h"
#include "ipc/chan.h"
#include "ipc/netconf.h"
#include "login/login.h"
#include "loop/loop.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"
#include "secrets/scrub.h"
#include "secrets/secret_set.h"
#include "tls/client.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_OVERRIDES = 4096, MAX_CA = 2 << 20 };

struct config {
	bool has_log;
	char **redact;
	size_t redact_bytes;
};

static int malformed(struct broker *b)
{
	return err_set(b->err, E_PROTOCOL, "a message of the network's configuration is malformed");
}

int config_take_rules(struct allowlist *list, const struct chan_frame *f, struct cloche_err *err)
{
	struct netconf_allowlist m;
	char name[128];

	if (f->type == NETCONF_ALLOW)
		return allowlist_add_host(list, f->payload, err);
	if (f->type != NETCONF_ALLOWLIST || !netconf_get_allowlist(f->payload, &m))
		return err_set(err, E_PROTOCOL, "a message of the policy is malformed");
	snprintf(name, sizeof(name), "%.*s", STR_FMT(str_prefix(m.label, sizeof(name) - 1)));
	return allowlist_add_yaml(list, m.text, name, err);
}

static int take_secret(struct broker *b, struct str payload)
{
	struct netconf_secret m;
	struct secret_spec spec = {0};
	char *name;
	int r;

	if (!netconf_get_secret(payload, &m) || m.role >= SECRET_ROLES)
		return malformed(b);
	name = str_dup(m.name);
	spec = (struct secret_spec){.name = name,
		.from = name,
		.scopes = m.scopes,
		.headers = m.headers,
		.allow_foreign_credentials = m.allow_foreign,
		.role = m.role};
	r = name ? secret_set_add(b->secrets, &spec, m.value, m.surrogate, b->err)
		 : err_nomem(b->err);
	free(name);
	strv_free(m.scopes);
	strv_free(m.headers);
	return r;
}

static int add_github_app(struct broker *b, const struct netconf_github_app *m)
{
	char header[] = "authorization", *headers[] = {header, NULL};
	_cleanup_(freep) char *name = str_dup(m->name);
	_cleanup_(github_app_freep) struct github_app *app = NULL;
	struct secret_spec spec = {.name = name,
		.from = name,
		.scopes = m->scopes,
		.headers = headers,
		.allow_foreign_credentials = m->allow_foreign};
	struct github_app_spec what = {.app_id = m->app_id,
		.installation_id = m->installation_id,
		.key = m->key,
		.base_url = m->base_url,
		.permissions = m->permissions,
		.repositories = m->repositories};
	int r = name ? github_app_new(&what, &app, b->err) : err_nomem(b->err);

	if (r < 0)
		return err_wrap(b->err, r, "secret %s", name ? name : "");
	r = secret_set_add_live(b->secrets, &spec, m->surrogate, m->surrogate, b->err);
	if (r == 0 && github_add(b, app, secret_set_count(b->secrets) - 1) < 0)
		r = err_nomem(b->err);
	if (r == 0)
		(void)TAKE_PTR(app);
	return r;
}

static int take_github_app(struct broker *b, struct str payload)
{
	struct netconf_github_app m;
	int r;

	if (!netconf_get_github_app(payload, &m))
		return malformed(b);
	r = add_github_app(b, &m);
	strv_free(m.repositories);
	strv_free(m.scopes);
	return r;
}

static int take_login(struct broker *b, struct str payload)
{
	_cleanup_(login_freep) struct login *login = NULL;
	struct netconf_login m;
	struct login_spec spec;
	size_t member = 0, n = secret_set_count(b->secrets);
	int r;

	if (!netconf_get_login(payload, &m))
		return malformed(b);
	spec = (struct login_spec){.file = m.file,
		.token = m.token,
		.refresh = m.refresh,
		.expires = m.expires,
		.url = m.url,
		.client_id = m.client_id,
		.client_secret = m.client_secret,
		.form = m.form,
		.again = m.again};
	while (member < n &&
		!str_eq(str_from(secret_set_get(b->secrets, member)->spec.name), m.name))
		member++;
	r = member < n ? login_new(&spec, &login, b->err) : malformed(b);
	if (r == 0 && m.expires_msec == 0)
		m.expires_msec =
			login_token_end(secret_reveal(secret_set_get(b->secrets, member)->value));
	if (r == 0 && renew_add(b, login, member, m.number, m.expires_msec) < 0)
		r = err_nomem(b->err);
	if (r == 0)
		(void)TAKE_PTR(login);
	message_done(netconf_login_message(), &m);
	return r;
}

static int take_dns(struct broker *b, struct str servers)
{
	if (b->dialer.servers)
		return malformed(b);
	b->dialer.servers = str_dup(servers);
	return b->dialer.servers ? 0 : err_nomem(b->err);
}

static int take_proxies(struct broker *b, struct str payload)
{
	struct netconf_proxy m;
	struct proxy_settings s;

	if (!netconf_get_proxy(payload, &m) || b->dialer.proxies.none)
		return malformed(b);
	s = (struct proxy_settings){.https = m.https,
		.http = m.http,
		.none = m.none,
		.https_name = "HTTPS_PROXY",
		.http_name = "HTTP_PROXY"};
	return proxies_set(&b->dialer.proxies, &s, b->err);
}

static int take_redact(struct broker *b, struct str value)
{
	struct config *c = b->config;

	c->redact_bytes += value.n;
	if (value.n > NETCONF_MAX_REDACT || c->redact_bytes > NETCONF_MAX_REDACT_ALL)
		return malformed(b);
	return strv_add(&c->redact, value) < 0 ? err_nomem(b->err) : 0;
}

static int take_override(struct broker *b, struct str payload)
{
	struct dialer *d = &b->dialer;
	struct netconf_connect_to m;
	struct override o = {0}, *v;

	if (!netconf_get_connect_to(payload, &m))
		return malformed(b);
	if (host_parse(m.host, &o.host) < 0 || m.port == 0 || m.to_port == 0 || m.address.n == 0)
		return err_set(b->err, E_USAGE, "--connect-to: not HOST:PORT:ADDR:PORT");
	if (d->overrides_n >= MAX_OVERRIDES)
		return err_set(b->err, E_LIMIT, "too many --connect-to");
	v = reallocarray(d->overrides, d->overrides_n + 1, sizeof(*v));
	if (!v)
		return err_nomem(b->err);
	d->overrides = v;
	o.port = m.port;
	o.to_port = m.to_port;
	/* The option has brackets around an IPv6 address; the resolver takes none. */
	if (m.address.n > 2 && m.address.p[0] == '[' && m.address.p[m.address.n - 1] == ']')
		m.address = str_make(m.address.p + 1, m.address.n - 2);
	o.address = str_dup(m.address);
	if (!o.address)
		return err_nomem(b->err);
	v[d->overrides_n++] = o;
	return 0;
}

static int take_log(struct broker *b, struct chan_frame *f)
{
	struct netconf_log m;
	unsigned n = 0;

	if (!netconf_get_log(f->payload, &m) || b->config->has_log ||
		f->fds_n !=
			(unsigned)m.plain + (unsigned)m.json + (unsigned)m.live + (unsigned)m.kept)
		return malformed(b);
	if (m.plain)
		b->lines.fds[0] = TAKE_FD(f->fds[n++]);
	if (m.json)
		b->lines.fds[1] = TAKE_FD(f->fds[n++]);
	if (m.live)
		b->lines.fds[2] = TAKE_FD(f->fds[n++]);
	if (m.kept)
		b->lines.fds[3] = TAKE_FD(f->fds[n]);
	b->config->has_log = true;
	return 0;
}

static int take_record(struct broker *b, struct chan_frame *f)
{
	struct netconf_record m;

	if (!netconf_get_record(f->payload, &m) || f->fds_n != 1 || b->tape.fd >= 0)
		return malformed(b);
	tape_start(&b->tape, TAKE_FD(f->fds[0]), m.limit);
	return 0;
}

static int take_offline(struct broker *b, struct chan_frame *f)
{
	if (f->payload.n > 0 || f->fds_n != 1 || b->offline)
		return malformed(b);
	return offline_start(b, TAKE_FD(f->fds[0]), b->err);
}

static int open_log(struct broker *b)
{
	const struct netlog_event begin = {.kind = NETLOG_TASK_START};
	struct netlog_config c = NETLOG_CONFIG_DEFAULT;

	c.plain_fd = b->lines.fds[0];
	c.json_fd = b->lines.fds[1];
	c.live_fd = b->lines.fds[2];
	c.kept_fd = b->lines.fds[3];
	b->lines.log = netlog_new(&c);
	if (!b->lines.log)
		return err_nomem(b->err);
	/* Several runs may share a file, so mark the start. Its loss is only counted; requests are
	 * refused if the log cannot be written. */
	if (netlog_write(b->lines.log, &begin) < 0)
		b->lines.unlogged++;
	return 0;
}

static int config_complete(struct broker *b)
{
	int r = open_log(b);

	if (r == 0 && secret_set_count(b->secrets) > 0)
		r = scrubber_new(b->secrets, &b->scrubber, b->err);
	if (r == 0 && b->config->redact)
		r = scrubber_new_of_values(b->config->redact, &b->lines.scrubber, b->err);
	if (r == 0)
		r = aws_setup(b, b->err);
	return r < 0 ? r : 1;
}

/* Return 1 if the configuration is complete. */
static int config_take(struct broker *b, struct chan_frame *f)
{
	if (f->fds_n > 0 && f->type != NETCONF_LOG && f->type != NETCONF_RECORD &&
		f->type != NETCONF_OFFLINE)
		return malformed(b);
	switch ((enum netconf_frame)f->type) {
	case NETCONF_ALLOWLIST:
	case NETCONF_ALLOW:
		return config_take_rules(b->policy, f, b->err);
	case NETCONF_SECRET:
		return take_secret(b, f->payload);
	case NETCONF_GITHUB_APP:
		return take_github_app(b, f->payload);
	case NETCONF_LOGIN:
		return take_login(b, f->payload);
	case NETCONF_CONNECT_TO:
		return take_override(b, f->payload);
	case NETCONF_UPSTREAM_CA:
		return tls_trust_add_pem(b->trust, f->payload, "--upstream-ca", b->err);
	case NETCONF_DNS:
		return take_dns(b, f->payload);
	case NETCONF_PROXY:
		return take_proxies(b, f->payload);
	case NETCONF_REDACT:
		return take_redact(b, f->payload);
	case NETCONF_LOG:
		return take_log(b, f);
	case NETCONF_RECORD:
		return take_record(b, f);
	case NETCONF_OFFLINE:
		return take_offline(b, f);
	case NETCONF_DONE:
		return config_complete(b);
	case NETCONF_WATCH:
		b->watching.expected = true;
		return f->payload.n == 0 ? 0 : malformed(b);
	case NETCONF_KEEP: /* there is nothing yet to keep */
	case NETCONF_ANSWER:
	case NETCONF_OK:
	case NETCONF_COUNTS:
	case NETCONF_REFUSED:
	case NETCONF_REPLACED:
	case NETCONF_QUESTION:
	case NETCONF_WITHDRAWN:
		break;
	}
	return malformed(b);
}

void config_refuse(struct broker *b)
{
	if (netconf_send_refused(&b->conf, b->err) == 0)
		(void)!chan_flush(&b->conf); /* a client that is gone needs no answer */
}

/* After the configuration, only the end of the channel is left to read. */
static void on_idle(struct broker *b)
{
	struct chan_frame f;
	int r = chan_recv(&b->conf, &f);

	if (r > 0)
		chan_frame_done(&f);
	if (r != 0)
		loop_io_remove(&b->conf_io);
}

static void on_conf(struct loop_io *io, uint32_t events)
{
	struct broker *b = container_of(io, struct broker, conf_io);
	struct chan_frame f;
	int r = 0;

	if (!b->config) {
		on_idle(b);
		return;
	}
	while (r == 0) {
		r = chan_recv(&b->conf, &f);
		if (r == 0)
			return;
		if (r < 0) {
			err_set(b->err, E_PROTOCOL,
				"the client went away before it had configured the network");
			broker_fail(b);
			return;
		}
		r = config_take(b, &f);
		chan_frame_done(&f);
	}
	if (r < 0) {
		config_refuse(b);
		broker_fail(b);
		return;
	}
	config_free(b->config);
	b->config = NULL;
	/* The buffer held the secrets; from here on they are only in memory of their own. */
	buf_done_wiped(&b->conf.in);
	b->conf.taken = 0;
	broker_configured(b);
}

int config_start(struct broker *b, struct cloche_err *err)
{
	int r;

	b->config = calloc(1, sizeof(*b->config));
	b->policy = allowlist_new();
	b->secrets = secret_set_new();
	if (!b->config || !b->policy || !b->secrets)
		return err_nomem(err);
	r = tls_trust_new(true, &b->trust, err);
	if (r < 0) {
		config_refuse(b);
		return r;
	}
	r = loop_io_add(b->loop, &b->conf_io, b->conf.fd, EPOLLIN, on_conf);
	return r < 0 ? err_sys(err, -r, "watch the client") : 0;
}

void config_free(struct config *c)
{
	if (c)
		strv_free(c->redact);
	free(c);
}

void config_finish(struct broker *b)
{
	struct netlog_counts n;
	struct netconf_counts m;

	if (!b->serving || !b->lines.log)
		return;
	n = netlog_counts(b->lines.log);
	m = (struct netconf_counts){.allowed = n.allowed, .blocked = n.blocked};
	if (netconf_send_counts(&b->conf, &m) == 0)
		(void)!chan_flush(&b->conf);
}
