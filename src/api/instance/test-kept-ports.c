/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of kept sandboxes that are forwarded, against the real supervisor. */
#include "api/instance/test-conn.h"

static int listen_on(uint32_t address, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 16) == 0);
	must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void only_loopback_listeners_are_forwarded(void)
{
	struct conn c = create();
	struct ctl_forward m = {.guest_port = 80, .host_address = STR("0.0.0.0")};
	struct ctl_refused refused;
	int fd = listen_on(INADDR_ANY, &m.host_port), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct chan_frame f;

	must(ctl_send_forward(&c.chan, &m, fd) == 0 && ctl_send_forward(&c.chan, &m, null) == 0);
	for (int i = 0; i < 2; i++) {
		f = next(&c, CTL_REFUSED);
		must(ctl_get_refused(f.payload, &refused));
		check_int(refused.err.code, E_DENIED);
		check_int(refused.request, CTL_FORWARD);
	}
	close(fd);
	close(null);
	remove_it(&c);
}

static void forward_to(struct conn *c, uint16_t guest, uint16_t *ret_host)
{
	struct ctl_forward m = {.guest_port = guest, .host_address = STR("127.0.0.1")};
	int fd = listen_on(INADDR_LOOPBACK, &m.host_port);
	struct chan_frame f;

	must(ctl_send_forward(&c->chan, &m, fd) == 0);
	f = next(c, CTL_FORWARDED);
	chan_frame_done(&f);
	close(fd);
	*ret_host = m.host_port;
}

static int call(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr = {htonl(INADDR_LOOPBACK)},
		.sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return fd_close(fd);
	return fd;
}

#define PY_SERVER                                                                                  \
	"exec python3 -c 'import socket,threading\n"                                               \
	"def serve(c):\n"                                                                          \
	"  d=b\"\"\n"                                                                              \
	"  while True:\n"                                                                          \
	"    x=c.recv(65536)\n"                                                                    \
	"    if not x: break\n"                                                                    \
	"    d+=x\n"                                                                               \
	"  c.sendall(d.upper()); c.close()\n"                                                      \
	"s=socket.socket(); s.bind((\"127.0.0.1\",8080)); s.listen(64)\n"                          \
	"print(\"up\",flush=True)\n"                                                               \
	"while True: threading.Thread(target=serve,args=s.accept()[:1]).start()\n'"

static void a_port_leads_into_the_room(void)
{
	enum { N = 20, SIZE = 300000 };
	struct conn c = create();
	struct running r;
	uint16_t port, nobody;
	int calls[N], fd;
	char *data = malloc(SIZE), line[8] = {0};

	must(data);
	ask(&c, &r, PY_SERVER, 2, 0, false, 0);
	is_started(&c, &r);
	must(read(r.out[0], line, sizeof(line)) == 3);
	forward_to(&c, 8080, &port);
	forward_to(&c, 8081, &nobody);
	check(record_has("\"guest_port\":8080,\"host_address\":\"127.0.0.1\""));
	memset(data, 'a', SIZE);
	for (int i = 0; i < N; i++) {
		calls[i] = call(port);
		check(calls[i] >= 0);
		check_int(fd_write_all(calls[i], data, i == 0 ? SIZE : 100), 0);
		check_int(shutdown(calls[i], SHUT_WR), 0);
	}
	memset(data, 'A', SIZE);
	for (int i = 0; i < N; i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(SIZE + 10);

		check_int(fd_read_to_end(calls[i], &b), 0);
		check(str_eq(buf_str(&b), str_make(data, i == 0 ? SIZE : 100)));
		close(calls[i]);
	}
	fd = call(nobody);
	check(fd < 0 || read(fd, line, 1) <= 0);
	fd_close(fd);
	run_done(&r);
	remove_it(&c);
	check_int(call(port), -1);
	free(data);
}

static void run_list(void)
{
	signal(SIGPIPE, SIG_IGN);
	sandboxes = fd_close(sandboxes);
	run_test(only_loopback_listeners_are_forwarded);
	run_test(a_port_leads_into_the_room);
}

int main(void)
{
	return run_everything(run_list);
}
