/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one thread, one loop. During an iteration connections are read and the
 * broker's frames are handled; both only add to buffers. At its end all that was added is written:
 * each connection once, then the broker's channel once. So under load many requests share a system
 * call, and nothing ever waits for more to come. */
#include "gateway/gateway.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/rest.h"
#include "gateway/broker.h"
#include "gateway/conn.h"
#include "gateway/h1.h"
#include "gateway/state.h"
#include "gateway/stream.h"
#include "ipc/helper.h"
#include "ipc/netchan.h"

#include <errno.h>
#include <utlist.h>

enum {
	/* All that can be pending for the broker: what connections may still add after reading has
	 * stopped (at most one head each, and that is bounded by broker_high), and the small frames
	 * of all streams. */
	BROKER_OUT_MAX = 4 * 1024 * 1024,
	SUPERVISOR_OUT_MAX = 64 * 1024,
};
#define REST_USEC (1 * USEC_PER_SEC)

void gateway_fail(struct gateway *g, int code, const char *message)
{
	loop_stop(g->loop, err_set(g->err, code, "%s", message));
}

void gateway_sent(struct gateway *g, int r)
{
	if (r < 0)
		gateway_fail(g, E_NETWORK, "cannot write to the broker");
}

bool gateway_hold(struct gateway *g, struct conn *c)
{
	if (chan_pending(&g->broker) <= g->limits->broker_high)
		return false;
	if (!c->held && !c->dead) {
		c->held = true;
		DL_APPEND2(g->held, c, held_prev, held_next);
		gateway_touch(g);
	}
	return true;
}

static void run_frames(struct loop_job *job)
{
	broker_read(container_of(job, struct gateway, frames));
}

void gateway_more_frames(struct gateway *g)
{
	loop_defer(g->loop, &g->frames, run_frames);
}

/* Complete answers are kept only here, and the broker no longer counts them, so limit them here. */
static void bound_unread(struct gateway *g)
{
	while (g->unread > g->limits->unread) {
		struct conn *c, *most = g->conns;

		DL_FOREACH (g->conns, c)
			if (c->unread > most->unread)
				most = c;
		event_send_of(most, (struct net_event){
					    .kind = NET_EVENT_LIMIT,
					    .a = STR("answers"),
					    .b = STR("too much that the room does not read"),
					    .c = host_str(&most->host),
				    });
		conn_abort(most);
	}
}

static void run_turn(struct loop_job *job)
{
	struct gateway *g = container_of(job, struct gateway, turn);
	uint64_t turn = ++g->turn_n;

	g->turning = true;
	/* Connections that are marked from here on are handled in the next iteration. */
	while (g->dirty && g->dirty->marked < turn) {
		struct conn *c = g->dirty;
		bool again = c->again;

		DL_DELETE2(g->dirty, c, dirty_prev, dirty_next);
		c->dirty = c->again = false;
		conn_flush(c);
		if (again && conn_may_read(c))
			c->stage->readable(c);
	}
	bound_unread(g);
	broker_flush(g);
	loop_set_under_way(g->loop, HASH_COUNT(g->streams) + g->opening);
	while (g->dead)
		conn_free(g->dead);
	g->turning = false;
	if (g->dirty)
		gateway_touch(g);
}

void gateway_touch(struct gateway *g)
{
	if (!g->turning)
		loop_defer(g->loop, &g->turn, run_turn);
}

/* --- the supervisor's channel --- */

static int take_listeners(struct gateway *g, struct chan_frame *f)
{
	int fds[HELPER_SOCKETS], r = 0;

	if (g->tcp[0].g || g->tcp[1].g || g->captured.g || !helper_get_listeners(f, fds))
		return -EPROTO;
	/* Each call takes its descriptor. After a failure the remaining descriptors are closed. */
	for (unsigned i = 0; i < HELPER_SOCKETS; i++) {
		if (fds[i] < 0)
			continue;
		if (r < 0)
			fd_close(fds[i]);
		else if (i == HELPER_TCP4 || i == HELPER_TCP6)
			r = listener_add(g, &g->tcp[i - HELPER_TCP4], fds[i]);
		else if (i == HELPER_CAPTURE)
			r = captured_add(g, &g->captured, fds[i]);
		else
			r = dns_udp_add(g, &g->udp[i - HELPER_UDP4], fds[i]);
	}
	return r;
}

void gateway_flush_supervisor(struct gateway *g)
{
	/* If it is gone, reading from it shows that. */
	if (chan_flush(&g->supervisor) == 0)
		loop_io_set(&g->supervisor_io,
			chan_pending(&g->supervisor) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void on_supervisor(struct loop_io *io, uint32_t events)
{
	struct gateway *g = container_of(io, struct gateway, supervisor_io);
	struct chan_frame f;
	int r;

	while ((r = chan_recv(&g->supervisor, &f)) > 0) {
		int e = f.type == HELPER_LISTENERS ? take_listeners(g, &f) : -EPROTO;

		chan_frame_done(&f);
		if (e < 0)
			gateway_fail(g, E_PROTOCOL, "the supervisor sent a malformed frame");
	}
	if (r == -EPIPE)
		loop_stop(g->loop, 0);
	else if (r < 0)
		gateway_fail(g, E_PROTOCOL, "the supervisor sent a malformed frame");
	else if (events & EPOLLOUT)
		gateway_flush_supervisor(g);
}

/* --- life --- */

static void on_rest(struct loop_timer *t)
{
	struct gateway *g = container_of(t, struct gateway, rest);

	if (g->conns_n == 0)
		rest_memory();
}

void gateway_rest(struct gateway *g)
{
	/* If this fails, everything works as well. */
	if (!g->rest.loop)
		(void)!loop_timer_set(g->loop, &g->rest, loop_now(g->loop) + REST_USEC, on_rest);
}

static int open_channels(
	struct gateway *g, const struct gateway_config *config, struct cloche_err *err)
{
	int r = chan_init(
		&g->supervisor, config->supervisor_fd, HELPER_MAX_PAYLOAD, SUPERVISOR_OUT_MAX);
	int e = chan_init(&g->broker, config->broker_fd, NET_MAX_PAYLOAD, BROKER_OUT_MAX);

	g->broker.watched = true;
	if (r >= 0)
		r = e;
	return r < 0 ? err_sys(err, -r, "use the inherited channels") : 0;
}

int gateway_new(const struct gateway_config *config, struct gateway **ret, struct cloche_err *err)
{
	_cleanup_(gateway_freep) struct gateway *g = calloc(1, sizeof(*g));
	int r;

	if (!g) {
		fd_close(config->supervisor_fd);
		fd_close(config->broker_fd);
		return err_nomem(err);
	}
	g->limits = config->limits ? config->limits : &gateway_limits_default;
	g->next_conn = g->next_stream = g->leaves.next_request = 1;
	g->answer = HTTP_HEAD_INIT;
	r = open_channels(g, config, err);
	if (r < 0)
		return r;
	g->loop = loop_new();
	if (!g->loop)
		return err_sys(err, errno, "make the event loop");
	g->names = dns_synthetic_new(g->limits->names);
	if (!g->names)
		return err_nomem(err);
	loop_allow_batches(g->loop);
	r = tls_server_new(&g->tls, err);
	if (r < 0)
		return r;
	r = loop_io_add(g->loop, &g->supervisor_io, g->supervisor.fd, EPOLLIN, on_supervisor);
	if (r < 0)
		return err_sys(err, -r, "watch the supervisor's channel");
	r = broker_start(g, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(g);
	return 0;
}

int gateway_run(struct gateway *g, struct cloche_err *err)
{
	int r;

	g->err = err;
	rest_set_up();
	gateway_touch(g);
	gateway_rest(g);
	r = helper_send_ready(&g->supervisor);
	if (r >= 0)
		r = chan_flush_wait(&g->supervisor, -1);
	if (r == -EPIPE)
		return 0; /* the supervisor is gone already */
	if (r < 0)
		return err_sys(err, -r, "write to the supervisor");
	rest_memory(); /* most of what the start has touched is not needed again */
	r = loop_run(g->loop);
	g->err = NULL;
	return r < 0 && (!err || !err->code) ? err_sys(err, -r, "run the event loop") : r;
}

struct gateway *gateway_free(struct gateway *g)
{
	if (!g)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(g->tcp); i++) {
		listener_done(&g->tcp[i]);
		dns_udp_done(&g->udp[i]);
	}
	captured_done(&g->captured);
	while (g->conns)
		conn_free(g->conns);
	while (g->dead)
		conn_free(g->dead);
	if (g->loop) {
		loop_timer_clear(&g->accepts.timer);
		loop_timer_clear(&g->rest);
		leaf_cache_done(g);
	}
	h1_pool_done(g);
	dns_log_done(g);
	http_head_done(&g->answer);
	dns_synthetic_free(g->names);
	tls_server_free(g->tls);
	chan_done(&g->supervisor);
	chan_done(&g->broker);
	loop_free(g->loop);
	free(g);
	return NULL;
}
