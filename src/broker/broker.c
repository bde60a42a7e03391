/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one loop. At start the authority's certificate is written first, because the
 * room's trust bundle waits for it. Then the configuration is read, files are loaded, and the
 * process narrows itself; only then is the first byte of the gateway read. At the end of an
 * iteration, broker_flush_gateway() writes the lines of the log, sends the requests that became
 * ready, and writes the queued frames to the gateway. */
#include "broker/broker.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/rand.h"
#include "base/rest.h"
#include "base/secmem.h"
#include "broker/attribute.h"
#include "broker/aws.h"
#include "broker/broker_internal.h"
#include "broker/config.h"
#include "broker/decide.h"
#include "broker/dial.h"
#include "broker/github.h"
#include "broker/log.h"
#include "broker/mint.h"
#include "broker/narrow.h"
#include "broker/offline.h"
#include "broker/origin.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/reload.h"
#include "broker/renew.h"
#include "broker/response.h"
#include "broker/scrubbing.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "dns/resolver.h"
#include "ipc/chan.h"
#include "ipc/helper.h"
#include "ipc/netchan.h"
#include "ipc/netconf.h"
#include "loop/loop.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"
#include "secrets/scrub.h"
#include "secrets/secret_set.h"
#include "tls/ca.h"
#include "tls/client.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { FRAMES_AT_ONCE = 256 };

void broker_fail(struct broker *b)
{
	loop_stop(b->loop, 1);
}

/* The gateway has gone, and with it the network of the room. */
static void gateway_gone(struct broker *b)
{
	loop_io_remove(&b->net_io);
	if (renew_holds(b))
		streams_free(b); /* nobody reads their answers any more */
	else
		loop_stop(b->loop, 0);
}

static void on_frames(struct loop_job *job);

/* The gateway has taken what waited: read from it and from the origins again. */
static void broker_resume(struct broker *b)
{
	struct stream *s, *tmp;

	b->bounds.full = false;
	loop_defer(b->loop, &b->frames, on_frames);
	HASH_ITER (hh, b->streams.open, s, tmp)
		response_resume(s);
}

static void broker_flush_gateway(struct loop_job *job)
{
	struct broker *b = container_of(job, struct broker, flush);
	int r;

	requests_go(b);
	if (b->lines.log)
		(void)!netlog_flush(b->lines.log); /* the log counts what is lost */
	r = chan_flush(&b->net);
	streams_reap(b);
	upstreams_reap(b, false);
	loop_set_under_way(b->loop, HASH_COUNT(b->streams.open));
	if (r < 0) {
		gateway_gone(b);
		return;
	}
	if (chan_pending(&b->net) > OUT_HIGH)
		b->bounds.full = true;
	else if (b->bounds.full && chan_pending(&b->net) < OUT_LOW)
		broker_resume(b);
	loop_io_set(&b->net_io, (b->bounds.full ? 0 : (uint32_t)EPOLLIN) |
					(chan_pending(&b->net) > 0 ? (uint32_t)EPOLLOUT : 0));
}

void broker_flush_later(struct broker *b)
{
	loop_defer(b->loop, &b->flush, broker_flush_gateway);
}

/* A gateway that breaks the protocol is compromised or faulty, so it is not served. Answers have
 * more bytes than requests, so no more requests are taken while too much waits. */
static void read_frames(struct broker *b)
{
	struct chan_frame f;
	int r = 1;

	for (int i = 0; i < FRAMES_AT_ONCE && r > 0 && chan_pending(&b->net) <= OUT_HIGH; i++) {
		r = chan_recv(&b->net, &f);
		if (r <= 0)
			break;
		r = f.fds_n > 0 ? -EPROTO : stream_frame(b, &f);
		chan_frame_done(&f);
		r = r < 0 ? r : 1;
	}
	if (r == -EPROTO)
		requests_drop(b);
	if (r > 0 && chan_pending(&b->net) > OUT_HIGH) {
		b->bounds.full = true;
	} else if (r > 0) {
		/* Frames left in the buffer do not make the socket readable. */
		loop_defer(b->loop, &b->frames, on_frames);
	} else if (r == -EPROTO) {
		err_set(b->err, E_PROTOCOL, "the gateway broke the protocol");
		if (log_warning(b, STR("the gateway broke the protocol; its network has ended")) <
			0)
			b->lines.unlogged++;
		loop_io_remove(&b->net_io);
		broker_fail(b);
	} else if (r < 0) {
		gateway_gone(b);
	}
}

static void on_frames(struct loop_job *job)
{
	struct broker *b = container_of(job, struct broker, frames);

	broker_flush_later(b);
	if (b->net_io.loop)
		read_frames(b);
}

static void on_net(struct loop_io *io, uint32_t events)
{
	struct broker *b = container_of(io, struct broker, net_io);

	broker_flush_later(b);
	if (events & ~(uint32_t)EPOLLOUT)
		read_frames(b);
}

int broker_tell_ports(struct broker *b, bool first)
{
	uint8_t bits[ALLOWLIST_PORT_BYTES];
	bool any = allowlist_tcp_ports(b->policy, bits);
	const struct net_ports m = {.tcp = str_make(bits, any ? sizeof(bits) : 0),
		.ssh = !b->offline && allowlist_has_ssh(b->policy)};

	_Static_assert(sizeof(bits) == NET_PORT_BYTES, "a bit for each port");
	if (!first && !any && !b->tcp_ports && m.ssh == b->ssh)
		return 0;
	b->tcp_ports = any;
	b->ssh = m.ssh;
	return net_send_ports(&b->net, &m);
}

/* Answers under way (events, a WebSocket) may bring the new value, too. */
static int broker_renew_scrubber(struct broker *b, struct cloche_err *err)
{
	_cleanup_(scrubber_freep) struct scrubber *fresh = NULL;
	struct stream *s, *tmp;
	int r = scrubber_new(b->secrets, &fresh, err);

	if (r < 0)
		return r;
	HASH_ITER (hh, b->streams.open, s, tmp)
		if (scrubbing_follow(s, fresh) < 0)
			return err_nomem(err);
	scrubber_free(b->scrubber);
	b->scrubber = TAKE_PTR(fresh);
	return 0;
}

int broker_renew_secret(
	struct broker *b, size_t member, struct secret *value, struct cloche_err *err)
{
	int r = secret_set_renew(b->secrets, member, value, err);

	if (r < 0)
		return r;
	r = broker_renew_scrubber(b, err);
	if (r < 0)
		(void)!secret_set_renew(b->secrets, member, NULL, NULL);
	return r;
}

int broker_flush_supervisor(struct broker *b)
{
	int r = chan_flush(&b->supervisor);

	if (r == 0)
		loop_io_set(&b->supervisor_io,
			chan_pending(&b->supervisor) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return r;
}

static int send_counts(struct broker *b)
{
	struct netlog_counts n =
		b->lines.log ? netlog_counts(b->lines.log) : (struct netlog_counts){0};
	struct helper_counted m = {.allowed = n.allowed,
		.blocked = n.blocked,
		.sent = b->bytes_out,
		.received = b->bytes_in};

	return helper_send_counted(&b->supervisor, &m);
}

/* Take the host's resolver files after they have changed. */
static int take_names(struct broker *b, const struct chan_frame *f)
{
	_cleanup_(buf_donep) struct buf resolv = BUF_INIT(64 * 1024), hosts = BUF_INIT(1 << 20);

	if (f->fds_n != 2 || f->payload.n > 0)
		return -EPROTO;
	/* If one is too large or cannot be read, nothing changes. */
	if (b->dialer.resolver && fd_read_to_end(f->fds[0], &resolv) == 0 &&
		fd_read_to_end(f->fds[1], &hosts) == 0 &&
		dns_resolver_renew(b->dialer.resolver, buf_str(&resolv), buf_str(&hosts)) < 0)
		broker_fail(b);
	return 0;
}

/* The supervisor sends no other frames. */
static int take_order(struct broker *b, struct chan_frame *f)
{
	if (f->type == HELPER_COUNT && f->payload.n == 0 && f->fds_n == 0)
		return send_counts(b);
	if (f->type == HELPER_OWNER && f->fds_n == 0)
		return attribute_answer(b, f->payload) ? 0 : -EPROTO;
	if (f->type == HELPER_NAMES)
		return take_names(b, f);
	if (f->type == HELPER_LOGIN)
		return renew_on_login(b, f) ? 0 : -EPROTO;
	if (f->type == HELPER_LOGIN_WRITTEN && f->fds_n == 0)
		return renew_on_written(b, f->payload) ? 0 : -EPROTO;
	if (f->type != HELPER_POLICY || f->payload.n > 0 || f->fds_n != 1)
		return -EPROTO;
	reload_begin(b, TAKE_FD(f->fds[0]));
	return 0;
}

static void on_supervisor(struct loop_io *io, uint32_t events)
{
	struct broker *b = container_of(io, struct broker, supervisor_io);
	struct chan_frame f;
	int r;

	while ((r = chan_recv(&b->supervisor, &f)) > 0) {
		r = take_order(b, &f);
		chan_frame_done(&f);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = broker_flush_supervisor(b);
	if (r < 0)
		loop_stop(b->loop, 0);
}

static void on_sweep(struct loop_timer *t)
{
	struct broker *b = container_of(t, struct broker, sweep);
	uint64_t now = loop_now(b->loop);
	struct stream *s, *tmp;

	pool_sweep(b);
	HASH_ITER (hh, b->streams.open, s, tmp) {
		if (s->up && !s->up->ops && now - s->up->since > CONNECT_USEC) {
			refuse_upstream(s, 502,
				s->scheme == NET_SSH ? "upstream_ssh" : "upstream_tls",
				s->scheme == NET_SSH ? "the session of SSH took too long"
						     : "the TLS handshake took too long");
		} else if (now - s->active > STALL_USEC) {
			stream_note(s, "nothing moved for an hour");
			stream_reset(s, NET_RESET_LIMIT);
		}
	}
	if (netlog_tick(b->lines.log) < 0)
		b->lines.unlogged++;
	if (b->rest_due && !b->streams.open) {
		b->rest_due = false;
		rest_memory();
	}
	if (loop_timer_set(b->loop, t, now + SWEEP_USEC, on_sweep) < 0)
		broker_fail(b);
}

/* Do everything that needs files, then narrow, then serve the gateway. */
static int serve(struct broker *b)
{
	int r = broker_narrow_first(b->err);

	/* Without a seed jansson would open a file for one. It is random, so that bodies cannot be
	 * made to collide. */
	json_object_seed((size_t)rand_u64() | 1);
	if (r == 0)
		r = b->offline ? 0 : dial_setup(b, b->err);
	if (r == 0)
		r = b->offline ? broker_narrow_offline(b->err) : broker_narrow_last(b->err);
	if (r < 0)
		return r;
	b->rest_due = true;
	if (loop_timer_set(b->loop, &b->sweep, loop_now(b->loop) + FIRST_SWEEP_USEC, on_sweep) < 0)
		return err_nomem(b->err);
	r = loop_io_add(b->loop, &b->net_io, b->net.fd, EPOLLIN, on_net);
	if (r < 0)
		return err_sys(b->err, -r, "watch the gateway");
	b->serving = true;
	return 0;
}

void broker_configured(struct broker *b)
{
	int r;

	if (serve(b) < 0) {
		config_refuse(b);
		broker_fail(b);
		return;
	}
	reloads_start(b);
	r = chan_send(&b->conf, NETCONF_OK, STR_NULL, NULL, 0);
	if (r == 0)
		r = chan_flush(&b->conf);
	if (r == 0)
		r = helper_send_ready(&b->supervisor);
	if (r == 0)
		r = chan_flush(&b->supervisor);
	if (r < 0) /* the client or the supervisor has gone */
		loop_stop(b->loop, 0);
}

/* This is on the critical path of the start-up: do as little as possible before it. */
static int publish_cert(struct broker *b, int fd)
{
	_cleanup_(buf_donep) struct buf pem = BUF_INIT(2 * TLS_CERT_MAX);
	int r = tls_ca_new(clock_real_usec(), &b->ca, b->err);

	if (r < 0)
		return r;
	r = tls_ca_add_pem(b->ca, &pem);
	if (r == 0)
		r = fd_write_all(fd, buf_data(&pem), buf_len(&pem));
	/* A supervisor that has closed the pipe does not wait for it either. */
	return r < 0 && r != -EPIPE ? err_sys(b->err, -r, "write the authority's certificate") : 0;
}

static int start(struct broker *b, const struct broker_fds *fds)
{
	int r = chan_init(
		&b->supervisor, fds->supervisor, HELPER_MAX_PAYLOAD, 2 * HELPER_MAX_PAYLOAD);

	if (r == 0)
		r = chan_init(&b->net, fds->net, NET_MAX_PAYLOAD, OUT_MAX);
	if (r == 0)
		r = chan_init(&b->conf, fds->conf, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD);
	if (r < 0)
		return err_sys(b->err, -r, "set up channels");
	b->net.watched = true;
	chan_refuse_fds(&b->net);
	fd_raise_limit(); /* each connection of the room may need one here */
	b->loop = loop_new();
	if (!b->loop)
		return err_sys(b->err, errno, "make the event loop");
	loop_allow_batches(b->loop);
	r = loop_io_add(b->loop, &b->supervisor_io, b->supervisor.fd, EPOLLIN, on_supervisor);
	if (r < 0)
		return err_sys(b->err, -r, "watch the supervisor");
	return config_start(b, b->err);
}

static void tear_down(struct broker *b)
{
	reloads_free(b);
	watch_free(b);
	github_free(b);
	renew_free(b);
	mints_free(b);
	origins_free(b);
	attribute_free(b);
	streams_free(b);
	if (b->lines.log)
		(void)!netlog_flush(b->lines.log);
	pool_free(b);
	upstreams_reap(b, true);
	dial_teardown(b);
	loop_timer_clear(&b->sweep);
	loop_io_remove(&b->supervisor_io);
	loop_io_remove(&b->net_io);
	loop_io_remove(&b->conf_io);
	if (b->conf.fd >= 0)
		config_finish(b);
	config_free(b->config);
	netlog_free(b->lines.log);
	for (size_t i = 0; i < ARRAY_SIZE(b->lines.fds); i++)
		fd_close(b->lines.fds[i]);
	tape_done(&b->tape);
	b->offline = offline_free(b->offline);
	chan_done(&b->net);
	chan_done(&b->conf);
	chan_done(&b->supervisor);
	scrubber_free(b->scrubber);
	scrubber_free(b->lines.scrubber);
	aws_teardown(b);
	secret_set_free(b->secrets);
	allowlist_free(b->policy);
	for (size_t i = 0; i < b->dialer.overrides_n; i++)
		free(b->dialer.overrides[i].address);
	free(b->dialer.overrides);
	free(b->dialer.servers);
	free(b->dialer.own);
	buf_done(&b->lines.url);
	tls_trust_free(b->trust);
	tls_ca_free(b->ca);
	loop_free(b->loop);
	free(b);
}

/* Tell the supervisor why, if that is still possible. */
static void say_why(struct broker *b)
{
	if (b->supervisor.fd >= 0 && helper_send_failed(&b->supervisor, b->err) == 0)
		(void)!chan_flush(&b->supervisor);
}

int broker_run(const struct broker_fds *fds, struct cloche_err *err)
{
	struct broker *b = calloc(1, sizeof(*b));
	struct cloche_err own = CLOCHE_ERR_INIT;
	int r;

	if (!b) {
		err_nomem(err);
		return 1;
	}
	secret_harden_process();
	rest_set_up();
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	b->err = err ? err : &own;
	b->supervisor.fd = b->net.fd = b->conf.fd = -1;
	b->lines.fds[0] = b->lines.fds[1] = b->lines.fds[2] = b->lines.fds[3] = -1;
	tape_init(&b->tape);
	b->lines.url = BUF_INIT(NET_MAX_TARGET + NET_MAX_HOST + 64);
	b->coding.max = DECODE_MAX;
	r = publish_cert(b, fds->cert);
	fd_close(fds->cert);
	if (r == 0)
		r = start(b, fds);
	if (r == 0)
		r = loop_run(b->loop);
	if (b->err->code)
		say_why(b);
	tear_down(b);
	return r == 0 ? 0 : 1;
}
