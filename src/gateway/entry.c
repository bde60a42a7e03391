/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the first bytes of a connection decide what it is, not its port, so TLS and
 * HTTP work on any port. Only if port and protocol contradict each other (TLS on 80, plain HTTP on
 * 443) is the connection refused, because the client is confused or probing. A protocol in which
 * the server speaks first (SSH, SMTP, databases) is recognised by the client's silence.
 *
 * The first byte is peeked at and not taken, so that TLS gets all its bytes from the socket.
 *
 * Whether a rule passes a connection as it is (plain TCP) has to be known before anything is read,
 * because the server may speak first. The broker says to which ports there are such rules; for
 * these it is asked, and if it has none for this name, the bytes decide.
 *
 * The ports of DNS are an exception: 53 is answered here, 853 is closed, so that no resolver
 * outside is ever reached. */
#include "gateway/entry.h"
#include "base/clock.h"
#include "gateway/answer.h"
#include "gateway/dns.h"
#include "gateway/h1.h"
#include "gateway/h2.h"
#include "gateway/identify.h"
#include "gateway/ssh.h"
#include "gateway/state.h"
#include "gateway/tunnel.h"
#include "tls/hello.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

static const struct stage identify_stage, handshake_stage, waiting_stage;

static const char no_leaf[] = "no certificate for this name";

static void entry_go(struct conn *c)
{
	const struct gateway *g = c->g;

	if (g->has_tcp && (g->tcp_ports[c->port / 8] & 1U << c->port % 8))
		tunnel_start_tcp(c);
	else
		entry_identify(c);
}

void entry_start(struct conn *c)
{
	if (c->port == 53) {
		dns_tcp_start(c);
		return;
	}
	if (c->port == 853) {
		event_send_conn(c, NET_EVENT_NOT_HTTP, 0, "DNS over TLS");
		conn_abort(c);
		return;
	}
	if (c->g->ports_known) {
		entry_go(c);
		return;
	}
	conn_set_stage(c, &waiting_stage);
	conn_want_read(c, false);
	conn_set_timeout(c, c->g->limits->first_byte_usec);
}

/* --- until the broker has said which ports may be TCP --- */

static void waiting_readable(struct conn *c)
{
	conn_want_read(c, false);
}

static const struct stage waiting_stage = {
	.readable = waiting_readable,
	.expired = conn_close,
};

bool entry_take_ports(struct gateway *g, const struct net_ports *m)
{
	struct str bits = m->tcp;
	struct conn *c, *tmp;

	if (bits.n != 0 && bits.n != sizeof(g->tcp_ports))
		return false;
	g->has_ssh = m->ssh;
	g->has_tcp = bits.n > 0;
	if (g->has_tcp)
		memcpy(g->tcp_ports, bits.p, bits.n);
	if (g->ports_known)
		return true;
	g->ports_known = true;
	DL_FOREACH_SAFE (g->conns, c, tmp) {
		if (c->stage != &waiting_stage)
			continue;
		conn_want_read(c, true);
		entry_go(c);
	}
	return true;
}

/* --- identify --- */

void entry_identify(struct conn *c)
{
	conn_set_stage(c, &identify_stage);
	conn_want_read(c, true);
	conn_set_timeout(c, c->g->limits->first_byte_usec);
}

static void refuse(struct conn *c, const char *why)
{
	event_send_conn(c, NET_EVENT_NOT_HTTP, 0, why);
	conn_close(c);
}

/* A rule for TCP could let it pass. Nobody is told so for the ports of what is looked into. */
static void tell_of_bytes(struct conn *c, const char *why)
{
	event_send_conn(
		c, c->port == 80 || c->port == 443 ? NET_EVENT_NOT_HTTP : NET_EVENT_TCP, 0, why);
}

static void refuse_bytes(struct conn *c, const char *why)
{
	tell_of_bytes(c, why);
	conn_close(c);
}

static void identify_expired(struct conn *c)
{
	refuse_bytes(c, buf_len(&c->in) ? "unfinished request line"
					: "client waits for the server to speak first");
}

/* A client that waits for the server to speak first may give up before we do. Web clients open
 * connections ahead of need and close them unused: that is not worth a line in the log. */
static void gone(struct conn *c)
{
	if (c->port == 80 || c->port == 443)
		conn_close(c);
	else
		refuse_bytes(c, "client closed before it was known what it speaks");
}

static void start_tls(struct conn *c)
{
	if (c->port == 80) {
		refuse(c, "TLS on port 80");
		return;
	}
	c->tls = tls_conn_new(c->g->tls, c->fd);
	if (!c->tls) {
		conn_close(c);
		return;
	}
	conn_set_stage(c, &handshake_stage);
	conn_set_timeout(c, c->g->limits->hello_usec);
	if (!c->dead)
		c->stage->readable(c);
}

static void start_http(struct conn *c)
{
	if (c->port != 443) {
		h1_start(c);
		return;
	}
	event_send_conn(c, NET_EVENT_NOT_HTTP, 400, "plain HTTP on port 443");
	answer_write(c, &(struct answer){
				.status = 400,
				.code = "plain_http",
				.message = "This is plain HTTP on port 443. Use https:// here.",
				.close = true,
			});
	conn_end_linger(c);
}

/* A program shows its user what the server says when it ends the session. */
static void refuse_ssh(struct conn *c)
{
	char why[ANSWER_SSH_MAX];
	struct host dest;
	int n;

	conn_dest_name(c, &dest);
	if (dest.kind == HOST_NAME)
		n = snprintf(why, sizeof(why),
			"cloche: SSH to %s is not allowed here (for git, outside: --allow "
			"ssh://git@%s/PATH). For git over https instead: git config --global "
			"url.https://%s/.insteadOf git@%s:",
			dest.text, dest.text, dest.text, dest.text);
	else
		n = snprintf(why, sizeof(why),
			"cloche: SSH to an address is not allowed here. Use git over https.");
	tell_of_bytes(c, identity_text(IDENTITY_SSH));
	if (answer_ssh(&c->out, str_make(why, (size_t)n)) < 0)
		conn_close(c);
	else
		conn_end_linger(c);
}

static void decide(struct conn *c)
{
	enum identity id = identify(str_prefix(buf_str(&c->in), IDENTIFY_MAX));
	struct host dest;

	switch (id) {
	case IDENTITY_MORE:
		return;
	case IDENTITY_HTTP:
		start_http(c);
		return;
	case IDENTITY_SOCKS4:
	case IDENTITY_SOCKS5:
		conn_dest_name(c, &dest);
		event_send_of(c, (struct net_event){
					 .kind = NET_EVENT_CONNECT,
					 .a = str_from(identity_text(id)),
					 .b = host_str(&dest),
				 });
		conn_close(c);
		return;
	case IDENTITY_TLS:
		refuse(c, identity_text(id));
		return;
	case IDENTITY_SSH:
		refuse_ssh(c);
		return;
	case IDENTITY_POSTGRES:
	case IDENTITY_UNKNOWN:
		break;
	}
	refuse_bytes(c, identity_text(id));
}

static void identify_readable(struct conn *c)
{
	char *at;
	char first[4];
	ssize_t n;

	if (buf_len(&c->in) == 0) {
		n = recv(c->fd, first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);
		if (n > 0 && identify(str_make(first, 1)) == IDENTITY_TLS) {
			start_tls(c);
			return;
		}
		if (n == sizeof(first) && c->g->has_ssh &&
			str_eq(str_make(first, 4), STR("SSH-"))) {
			ssh_start(c);
			return;
		}
	}
	if (buf_reserve(&c->in, 4096, &at) < 0) {
		conn_close(c);
		return;
	}
	n = conn_read(c, at, 4096);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		gone(c);
		return;
	}
	buf_commit(&c->in, (size_t)n);
	decide(c);
}

static const struct stage identify_stage = {
	.readable = identify_readable,
	.expired = identify_expired,
};

/* --- handshake --- */

/* Get the name that the client sent. Return false if it sent none or something that is not a name:
 * with an address there, the log would show where the room claims to go. */
static bool entry_sni_name(const struct conn *c, struct host *ret)
{
	return host_parse(tls_conn_sni(c->tls), ret) == 0 && ret->kind == HOST_NAME;
}

static void handshake_failed(struct conn *c, const char *why)
{
	struct host name;
	char text[CONN_DEST_MAX];

	event_send_of(c,
		(struct net_event){
			.kind = NET_EVENT_TLS,
			.a = entry_sni_name(c, &name) ? host_str(&name) : conn_dest_text(c, text),
			.b = str_from(why),
		});
	conn_close(c);
}

/* Find the host that the client means: the name that it sent, or the address that it connected to
 * if it sent none. Without a name, the client learns what is wrong from an answer, not from a
 * broken handshake. */
static bool entry_find_host(struct conn *c)
{
	if (tls_conn_sni(c->tls).n == 0) {
		conn_dest_host(c, &c->host);
		return true;
	}
	return entry_sni_name(c, &c->host);
}

/* A tunnel is judged by its name alone, so the ClientHello must have a name, and it must be the
 * real one. Return false if the handshake is to fail. */
static bool take_tunnel(struct conn *c)
{
	struct str taken = tls_conn_taken(c->tls);

	if (tls_conn_sni(c->tls).n == 0) {
		tls_conn_refuse(c->tls, "a tunnel needs the name of its host (SNI)");
		return false;
	}
	if (hello_hides_name(taken)) {
		tls_conn_refuse(c->tls, "a tunnel cannot be judged by an encrypted ClientHello");
		return false;
	}
	tunnel_start(c, taken);
	return true;
}

/* Do what the broker has decided. Return whether the handshake goes on. */
static bool take_leaf(struct conn *c, const struct leaf *leaf)
{
	enum net_mode mode = leaf ? leaf->mode : NET_MODE_END;

	switch (mode) {
	case NET_MODE_HTTP1:
	case NET_MODE_H2:
		c->h2 = mode == NET_MODE_H2;
		if (tls_conn_set_leaf(c->tls, leaf->cert, c->h2) == 0)
			return true;
		break;
	case NET_MODE_TUNNEL:
		return !take_tunnel(c);
	case NET_MODE_END:
		break;
	}
	tls_conn_refuse(c->tls, no_leaf);
	return true;
}

/* Ask the broker how to go on. Return whether the handshake can go on now. */
static bool want_leaf(struct conn *c)
{
	const struct leaf *leaf = NULL;

	conn_set_timeout(c, c->g->limits->handshake_usec);
	if (c->dead)
		return false;
	if (!entry_find_host(c)) {
		tls_conn_refuse(c->tls, "server_name is not a canonical host name");
		return true;
	}
	if (leaf_get(c, tls_conn_offer(c->tls), &leaf) == 0) {
		conn_want_read(c, false);
		return false;
	}
	return take_leaf(c, leaf);
}

static void handshake_readable(struct conn *c)
{
	enum tls_hs r;

	if (c->leaf)
		return;
	r = tls_conn_handshake(c->tls);
	if (r == TLS_HS_WANT_LEAF && want_leaf(c))
		r = tls_conn_handshake(c->tls);
	if (c->dead)
		return;
	switch (r) {
	case TLS_HS_WANT_READ:
		conn_mark(c);
		return;
	case TLS_HS_WANT_LEAF:
		return;
	case TLS_HS_FAILED:
		handshake_failed(c, tls_conn_error(c->tls));
		return;
	case TLS_HS_DONE:
		break;
	}
	c->tls_done = true;
	conn_mark(c);
	if (c->h2)
		h2_start(c);
	else
		h1_start(c);
}

static void handshake_expired(struct conn *c)
{
	handshake_failed(c,
		tls_conn_has_hello(c->tls) ? "handshake took too long" : "no ClientHello in time");
}

static const struct stage handshake_stage = {
	.opens = true,
	.readable = handshake_readable,
	.expired = handshake_expired,
};

void entry_leaf_ready(struct conn *c, const struct leaf *leaf)
{
	if (!take_leaf(c, leaf))
		return;
	conn_want_read(c, true);
	handshake_readable(c);
}
