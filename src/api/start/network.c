/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: everything is queued at once and written in the client's loop, while the
 * client waits for other things. If the broker refuses it, that wait ends with the broker's own
 * message. The real values are in the channel's buffer until they are written; the buffer is wiped
 * when it is freed. */
#include "api/start/network.h"
#include "api/start/logs.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "jail/source.h"
#include "policy/allowlist.h"
#include "policy/proxy.h"
#include "record/netlogs.h"
#include "secrets/surrogate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

enum { LAST_WORD_MS = 2000 };

static int send_github_app(
	struct chan *c, const cloche_secrets *secrets, const struct masked_secret *m)
{
	const struct sandbox_github_app *app = secrets_github_app(secrets, m->spec.name);
	struct netconf_github_app a = {.name = str_from(m->spec.name),
		.surrogate = m->surrogate,
		.app_id = str_from(app->app_id),
		.installation_id = str_from(app->installation_id),
		.key = secret_reveal(app->key),
		.base_url = str_from(app->base_url),
		.permissions = str_from(app->permissions),
		.repositories = app->repositories,
		.scopes = m->spec.scopes,
		.allow_foreign = m->spec.allow_foreign_credentials};

	return netconf_send_github_app(c, &a);
}

static int send_secret(struct chan *c, const struct masked_secret *m)
{
	struct netconf_secret s = {.name = str_from(m->spec.name),
		.value = secret_reveal(m->value),
		.surrogate = m->surrogate,
		.scopes = m->spec.scopes,
		.headers = m->spec.headers,
		.allow_foreign = m->spec.allow_foreign_credentials,
		.role = (uint8_t)m->spec.role};

	return netconf_send_secret(c, &s);
}

static int send_login(struct chan *c, const struct sandbox_login *l)
{
	const struct login_spec *spec = &l->spec;
	struct netconf_login m = {.name = str_from(l->name),
		.number = (uint8_t)l->number,
		.expires_msec = l->expires_msec,
		.file = spec->file,
		.token = spec->token,
		.refresh = spec->refresh,
		.expires = spec->expires,
		.url = spec->url,
		.client_id = spec->client_id,
		.client_secret = spec->client_secret,
		.form = spec->form,
		.again = spec->again};

	return netconf_send_login(c, &m);
}

static int send_secrets(struct chan *c, const cloche_secrets *secrets)
{
	size_t n = secrets ? secret_set_count(secrets->set) : 0;
	const struct sandbox_login *l;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct masked_secret *m = secret_set_get(secrets->set, i);

		r = m->live ? send_github_app(c, secrets, m) : send_secret(c, m);
	}
	LL_FOREACH (secrets ? secrets->logins : NULL, l)
		if (r == 0)
			r = send_login(c, l);
	return r;
}

int network_send_allowlist(struct chan *c, const cloche_allowlist *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && list && i < list->sources_n; i++) {
		const struct allow_source *s = &list->sources[i];
		const struct netconf_allowlist m = {str_from(s->name), str_from(s->text)};

		r = s->name ? netconf_send_allowlist(c, &m)
			    : chan_send(c, NETCONF_ALLOW, m.text, NULL, 0);
	}
	return r;
}

/* They are judged here, too, so that nothing begins with wrong ones. */
static int send_proxies(struct chan *c, struct cloche_err *err)
{
	_cleanup_(proxies_donep) struct proxies proxies = {0};
	struct proxy_settings s = proxy_settings_from(environ);
	const struct netconf_proxy m = {.https = s.https, .http = s.http, .none = s.none};
	int r = proxies_set(&proxies, &s, err);

	if (r < 0 || (s.https.n == 0 && s.http.n == 0))
		return r;
	r = netconf_send_proxy(c, &m);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

/* It may have been left out when cloche was built. */
static int check_ssh(const cloche_sandbox *sb, struct cloche_err *err)
{
	_cleanup_(freep) char *program = NULL;

	if (!sb->allowlist || !allowlist_has_ssh(sb->allowlist->rules))
		return 0;
	program = program_find("cloche-ssh", NULL);
	if (program)
		return 0;
	err_set(err, E_UNSUPPORTED, "git over ssh needs cloche-ssh, which is not installed");
	err_hint(err, "it is built where libssh is");
	return -E_UNSUPPORTED;
}

static int send_policy(struct chan *c, const cloche_sandbox *sb)
{
	int r = network_send_allowlist(c, sb->allowlist);

	if (r == 0 && sb->ask)
		r = chan_send(c, NETCONF_WATCH, STR_NULL, NULL, 0);
	for (char *const *rule = sb->connect_to; r == 0 && rule && *rule; rule++) {
		struct sandbox_connect_to t;

		if (!sandbox_parse_connect_to(*rule, &t))
			return -EINVAL;
		r = netconf_send_connect_to(
			c, &(struct netconf_connect_to){.host = host_str(&t.host),
				   .address = host_str(&t.address),
				   .port = t.port,
				   .to_port = t.to_port});
	}
	if (r == 0 && sb->upstream_dns)
		r = chan_send(c, NETCONF_DNS, str_from(sb->upstream_dns), NULL, 0);
	for (size_t i = 0; r == 0 && sb->redact && sb->redact[i]; i++)
		r = chan_send(c, NETCONF_REDACT, str_from(sb->redact[i]), NULL, 0);
	if (r == 0 && sb->upstream_ca)
		r = chan_send(c, NETCONF_UPSTREAM_CA, str_from(sb->upstream_ca), NULL, 0);
	return r;
}

/* Open for writing what the user named, but nothing that a room may have put in its place or on the
 * way to it. */
static int open_beside_room(const char *path, struct cloche_err *err)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(freep) char *home = fs_home();
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = hostpath_find(path, home, "network log", &at, err);

	if (r < 0 && err && err->sys_errno == ENOENT)
		err_hint(err, "make the directory of this file first (mkdir -p)");
	if (r == 0)
		r = source_judge_path(&at, path, home, "network log", err);
	if (r < 0)
		return r;
	fd = fd_lift(openat(at.dir, at.name[0] ? at.name : ".",
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
		0600));
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "network log %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, E_DENIED, "network log %s: it is no regular file", path);
	return TAKE_FD(fd);
}

/* Files in /dev (/dev/stderr) belong to the machine and need no checks. */
static int open_log(const char *path, const char *suffix, int *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *name = NULL;
	int fd;

	if (asprintf(&name, "%s%s", path, suffix) < 0) {
		name = NULL;
		return err_nomem(err);
	}
	if (!hostpath_is_device(name)) {
		fd = open_beside_room(name, err);
		if (fd < 0)
			return fd;
	} else {
		fd = fd_lift(open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
		if (fd < 0)
			return err_sys(err, errno, "network log %s", name);
	}
	*ret = fd;
	return 0;
}

void network_logs_close(struct network_logs *l)
{
	l->plain = fd_close(l->plain);
	l->json = fd_close(l->json);
}

int network_logs_open(const cloche_sandbox *sb, struct network_logs *l, struct cloche_err *err)
{
	int r = 0;

	if (!sb->network_log || !sandbox_wants_gateway(sb))
		return 0;
	r = open_log(sb->network_log, "", &l->plain, err);
	if (r == 0 && sb->network_log_json)
		r = open_log(sb->network_log_json, "", &l->json, err);
	else if (r == 0 && !hostpath_is_device(sb->network_log))
		r = open_log(sb->network_log, ".jsonl", &l->json, err);
	return r;
}

/* The log that the sandbox keeps by itself is nobody's wish: without a place for it there is none.
 */
static int send_logs(struct chan *c, const cloche_sandbox *sb, const struct network_logs *logs,
	const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int kept = netlogs_create(id, sb->name, NULL);
	const struct netconf_log m = {
		logs->plain >= 0, logs->json >= 0, sb->network_log_fd >= 0, kept >= 0};
	const int all[4] = {logs->plain, logs->json, sb->network_log_fd, kept};
	int fds[4], r;
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i] >= 0)
			fds[n++] = all[i];
	r = message_send(c, NETCONF_LOG, netconf_log_message(), &m, fds, n);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

/* Remove the cassette and the log: nothing was requested, so they are empty. */
static void forget_record(struct network *n)
{
	_cleanup_fd_ int logs = n->recorded ? oplogs_open(NULL) : -1;

	if (logs >= 0)
		(void)!oplog_remove_cassette(logs, client_id(n->client), NULL);
	n->recorded = false;
	netlogs_remove(client_id(n->client));
}

static int take_frame(struct network *n, const struct chan_frame *f, struct cloche_err *err)
{
	switch (f->type) {
	case NETCONF_OK:
		n->accepted = true;
		return 0;
	case NETCONF_COUNTS:
		if (netconf_get_counts(f->payload, &n->counts))
			return 0;
		break;
	case NETCONF_REFUSED:
		forget_record(n);
		return err_wrap(err, netconf_get_refused(f->payload, err), "network");
	default:
		break;
	}
	return err_set(err, E_PROTOCOL, "the broker sent an invalid message");
}

static void on_ready(struct loop_io *io, uint32_t events)
{
	struct network *n = container_of(io, struct network, io);
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct chan_frame f;
	int r = chan_flush(&n->chan);

	while (r == 0) {
		r = chan_recv(&n->chan, &f);
		if (r <= 0)
			break;
		r = take_frame(n, &f, &why);
		chan_frame_done(&f);
		if (r < 0) {
			client_fail(n->client, &why);
			return;
		}
	}
	/* The supervisor reports why the broker went away, so we do not. */
	if (r < 0)
		loop_io_remove(io);
	else
		loop_io_set(io, chan_pending(&n->chan) > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Create the cassette of this sandbox, beside its log, and send it. */
static int send_record(
	struct network *n, const cloche_sandbox *sb, const char *id, struct cloche_err *err)
{
	const struct netconf_record m = {.limit = sb->record_limit};
	_cleanup_fd_ int fd = -1;
	int r;

	if (!sandbox_is_recorded(sb))
		return 0;
	fd = oplog_create_cassette(id, err);
	if (fd < 0)
		return fd;
	n->recorded = true;
	r = netconf_send_record(&n->chan, &m, fd);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

/* Offline, the broker needs neither the policy nor the secrets. */
static int send_offline(struct network *n, const char *name, struct cloche_err *err)
{
	_cleanup_fd_ int fd = logs_find_cassette(name, err);
	int r;

	if (fd < 0)
		return fd;
	r = chan_send(&n->chan, NETCONF_OFFLINE, STR_NULL, &fd, 1);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

static int send_access(struct network *n, const cloche_sandbox *sb, struct cloche_err *err)
{
	int r;

	if (sb->offline)
		return send_offline(n, sb->offline, err);
	r = check_ssh(sb, err);
	if (r == 0)
		r = send_proxies(&n->chan, err);
	if (r < 0)
		return r;
	r = send_policy(&n->chan, sb);
	if (r == 0)
		r = send_secrets(&n->chan, sb->secrets);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

int network_start(struct network *n, struct client *client, const cloche_sandbox *sb,
	const struct network_logs *logs, int config_fd, struct cloche_err *err)
{
	int r = chan_init(&n->chan, config_fd, NETCONF_MAX_PAYLOAD, NETWORK_OUT_MAX);

	n->open = true;
	if (r < 0)
		return err_sys(err, -r, "configure the broker");
	r = send_access(n, sb, err);
	if (r == 0)
		r = send_logs(&n->chan, sb, logs, client_id(client), err);
	if (r == 0)
		r = send_record(n, sb, client_id(client), err);
	if (r < 0)
		return r;
	r = chan_send(&n->chan, NETCONF_DONE, STR_NULL, NULL, 0);
	if (r == 0)
		r = chan_flush(&n->chan);
	n->client = client;
	if (r == 0)
		r = loop_io_add(
			client_loop(client), &n->io, config_fd, EPOLLIN | EPOLLOUT, on_ready);
	return r < 0 ? err_sys(err, -r, "configure the broker") : 0;
}

bool network_may_be_refused(const cloche_sandbox *sb)
{
	size_t bytes = 0;

	for (size_t i = 0; sb->secrets && i < secret_set_count(sb->secrets->set); i++)
		bytes += secret_reveal(secret_set_get(sb->secrets->set, i)->value).n;
	/* A single secret is never too long to look for in answers, but several together may be. */
	return sb->offline || sb->upstream_ca || (sb->secrets && sb->secrets->github_apps) ||
	       bytes > SURROGATE_MAX;
}

void network_finish(struct network *n)
{
	struct chan_frame f;

	if (!n->open || !n->io.loop)
		return;
	while (chan_recv_wait(&n->chan, &f, LAST_WORD_MS) > 0) {
		(void)take_frame(n, &f, NULL);
		chan_frame_done(&f);
	}
}

void network_done(struct network *n)
{
	if (n->open)
		chan_done(&n->chan);
	n->open = false;
}
