/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/test-seen.h"
#include "base/clock.h"

struct rig g;

struct seen seen[SEEN_MAX];

bool take_frame(int ms)
{
	struct chan_frame f;
	struct net_response m;
	struct wire_in in;
	struct str data;
	struct seen *s;
	uint32_t id;

	if (chan_recv_wait(&g.net, &f, ms) != 1)
		return false;
	in = wire_in(f.payload);
	id = wire_get_u32(&in);
	must(id < SEEN_MAX);
	s = &seen[id];
	check(!s->over);
	if (f.type == NET_HEAD) {
		must(net_get_response(f.payload, &m, &in));
		s->status = m.status;
	} else if (f.type == NET_INTERIM) {
		s->interims++;
	} else if (f.type == NET_DATA) {
		must(net_get_data(f.payload, &id, &data));
		data = str_prefix(data, sizeof(s->text) - 1 - MIN(s->bytes, sizeof(s->text) - 1));
		memcpy(s->text + strlen(s->text), data.p, data.n);
		s->bytes += f.payload.n - 4;
		s->pieces++;
	}
	s->reset = f.type == NET_RESET;
	s->over = f.type == NET_END || f.type == NET_RESET;
	chan_frame_done(&f);
	return true;
}

void wait_over(uint32_t id)
{
	while (!seen[id].over)
		must(take_frame(PATIENCE_MS));
}

void settle(void)
{
	for (int i = 0; i < 2; i++) {
		uint32_t id = rig_open(&g, &(struct ask){.host = "no.example", .target = "/"});

		wait_over(id);
		check_int(seen[id].status, 403);
	}
}

unsigned count_over(uint32_t first, uint32_t last)
{
	unsigned n = 0;

	for (uint32_t i = first; i <= last; i++)
		n += seen[i].over;
	return n;
}

void pass(uint64_t usec)
{
	clock_pass(g.pid, usec);
}

void check_may_take(uint32_t id, uint64_t usec)
{
	pass(usec - USEC_PER_MSEC);
	settle();
	check(!seen[id].over);
	pass(USEC_PER_MSEC);
}

int listen_at(int backlog, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, backlog) == 0 &&
		getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

void make_busy(struct busy *b)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	b->fd = listen_at(0, &b->port);
	a.sin_port = htons(b->port);
	for (size_t i = 0; i < ARRAY_SIZE(b->fillers); i++) {
		b->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(b->fillers[i], (struct sockaddr *)&a, sizeof(a));
	}
}

void busy_done(struct busy *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(b->fillers); i++)
		close(b->fillers[i]);
	close(b->fd);
}

int accept_and_get(int listener, char *ret, size_t size)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	must(n > 0);
	ret[n] = '\0';
	return fd;
}

int accept_and_read(int listener)
{
	char bytes[4096];

	return accept_and_get(listener, bytes, sizeof(bytes));
}

void write_z(int fd, const char *text)
{
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

void start(const char *yaml, uint16_t port)
{
	static const char *const hosts[] = {"a.test", "b.test", "c.test"};

	memset(seen, 0, sizeof(seen));
	rig_start(&g);
	rig_allow(&g, yaml);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		rig_connect_to(&g, hosts[i], 80, port);
		rig_connect_to(&g, hosts[i], 443, port);
	}
	rig_serve(&g);
}

void stop(void)
{
	int status = rig_stop(&g);

	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
