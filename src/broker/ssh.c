/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker decides and dials, as for any request, and then hands the
 * connection to a process that speaks SSH with the host. What that process answers first says
 * whether there is a session; then its socket is a tunnel like any other. It reads what the host
 * sends, so its answer is bounded and its text is shown as printable ASCII. */
#include "broker/ssh.h"
#include "base/account.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "ipc/helper.h"
#include "ipc/sshleg.h"

#include <errno.h>
#include <sys/socket.h>

bool ssh_is_open(const struct net_open *m)
{
	return sshleg_method_of(m->method) != SSHLEG_METHOD_END && sshleg_is_path(m->target) &&
	       m->fields_n >= 1 && m->fields_n <= 2 && m->body == NET_BODY_STREAM && m->length == 0;
}

struct str ssh_field(const struct stream *s, struct str name)
{
	int i = http_fields_find(&s->head.fields, name, 0);

	return i < 0 ? STR_NULL : http_fields_value(&s->head.fields, (unsigned)i);
}

bool ssh_has_fields(const struct stream *s)
{
	struct str protocol = ssh_field(s, STR(SSHLEG_FIELD_PROTOCOL));

	return account_is_name(ssh_field(s, STR(SSHLEG_FIELD_USER))) &&
	       sshleg_is_protocol(protocol) && (protocol.n > 0) == (s->head.fields.n == 2);
}

static int ssh_send_request(struct upstream *u)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SSHLEG_MAX_RECORD);
	const struct stream *s = u->stream;
	const struct sshleg_request m = {.method = sshleg_method_of(http_head_method(&s->head)),
		.user = ssh_field(s, STR(SSHLEG_FIELD_USER)),
		.path = stream_target(s),
		.protocol = ssh_field(s, STR(SSHLEG_FIELD_PROTOCOL)),
		.host = host_bare(&s->host),
		.port = s->port};
	int r = sshleg_put_request(&out, &m);

	/* Nothing was written to this socket before, so it has room. */
	if (r == 0 &&
		send(u->fd, buf_data(&out), buf_len(&out), MSG_NOSIGNAL) != (ssize_t)buf_len(&out))
		r = -EPIPE;
	return r;
}

int ssh_upstream_start(struct upstream *u)
{
	struct broker *b = u->broker;
	int pair[2], r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return r;
	r = fd_set_nonblock(pair[0], true);
	if (r == 0)
		r = helper_send_ssh(&b->supervisor, (int[]){u->fd, pair[1]});
	fd_close(pair[1]);
	fd_close(u->fd);
	u->fd = pair[0];
	if (r == 0)
		r = broker_flush_supervisor(b);
	return r == 0 ? ssh_send_request(u) : r;
}

/* No more is read than the answer, since bytes of git follow it. */
static ssize_t ssh_read_answer(struct upstream *u, struct sshleg_answer *ret)
{
	size_t have = buf_len(&u->answer), want = 4;
	ssize_t n;
	char *at;

	if (have >= want) {
		struct wire_in r = wire_in(buf_str(&u->answer));

		want += wire_get_u32(&r);
	}
	if (want > SSHLEG_MAX_RECORD || buf_reserve(&u->answer, want - have, &at) < 0)
		return -EPROTO;
	n = recv(u->fd, at, want - have, 0);
	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR) ? -EPIPE : 0;
	buf_commit(&u->answer, (size_t)n);
	n = sshleg_take_answer(buf_str(&u->answer), ret);
	return n == 0 ? -EAGAIN : n;
}

enum tls_io ssh_upstream_answer(struct upstream *u, char *why, size_t why_size)
{
	struct sshleg_answer m;
	ssize_t n;

	do
		n = ssh_read_answer(u, &m);
	while (n == -EAGAIN);
	if (n == 0)
		return TLS_IO_READ;
	if (n > 0 && m.status == 200)
		return TLS_IO_OK;
	str_copy(why, why_size, n > 0 ? m.text : STR("no session of SSH could be started"));
	for (; *why; why++)
		if ((unsigned char)*why < ' ' || (unsigned char)*why > '~')
			*why = '?';
	return TLS_IO_FAILED;
}
