/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "provider/native/test-own-init.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static void no_network(void)
{
	struct room_spec s;

	spec_for(&s, "no-network", NULL);
	run(&s);
}

/* Accepts one connection and answers with the address that was dialled. */
static void answer_dialled(int listener, int want_port)
{
	struct sockaddr_storage to = {0};
	struct pollfd p = {.fd = listener, .events = POLLIN};
	socklen_t n = sizeof(to);
	char text[INET6_ADDRSTRLEN] = "";
	bool v6;
	int c, port;

	check_int(poll(&p, 1, 5000), 1);
	c = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(c >= 0);
	if (c < 0)
		return;
	check_int(getsockname(c, (void *)&to, &n), 0);
	v6 = to.ss_family == AF_INET6;
	inet_ntop(to.ss_family,
		v6 ? (void *)&((struct sockaddr_in6 *)&to)->sin6_addr
		   : (void *)&((struct sockaddr_in *)&to)->sin_addr,
		text, sizeof(text));
	port = ntohs(v6 ? ((struct sockaddr_in6 *)&to)->sin6_port
			: ((struct sockaddr_in *)&to)->sin_port);
	check_int(port, want_port);
	check_int(fd_write_all(c, text, strlen(text)), 0);
	close(c);
}

/* Answers a datagram from the address that it was sent to. */
static void answer_query(int s)
{
	union {
		struct cmsghdr align;
		char mem[256];
	} control;
	char text[64];
	struct sockaddr_storage from;
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text)};
	struct msghdr msg = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.mem,
		.msg_controllen = sizeof(control.mem)};
	struct pollfd p = {.fd = s, .events = POLLIN};
	struct in_pktinfo info = {0};
	struct cmsghdr *c;
	char address[INET_ADDRSTRLEN] = "";

	check_int(poll(&p, 1, 5000), 1);
	check_int(recvmsg(s, &msg, 0), 5);
	for (c = CMSG_FIRSTHDR(&msg); c; c = fd_next_control(&msg, c))
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&info, CMSG_DATA(c), sizeof(info));
	inet_ntop(AF_INET, &info.ipi_addr, address, sizeof(address));
	check_z(address, "8.8.8.8");
	info.ipi_spec_dst = info.ipi_addr;
	info.ipi_ifindex = 0;
	iov = (struct iovec){.iov_base = text, .iov_len = 6};
	memcpy(text, "answer", 6);
	msg.msg_controllen = CMSG_SPACE(sizeof(info));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	check_int(sendmsg(s, &msg, 0), 6);
}

static void network_is_captured(void)
{
	static const struct {
		const char *address;
		int port;
	} dialled[] = {{"203.0.113.7", 443}, {"169.254.169.254", 80}, {"10.1.2.3", 65535},
		{"198.18.0.9", 15001}, {"2001:db8::7", 22}};
	struct room_spec s;
	struct room *room;
	size_t i, n = ARRAY_SIZE(dialled);
	char ports[ARRAY_SIZE(dialled)][8];
	int fds[ROOM_LISTENERS] = {-1, -1, -1, -1, -1};

	spec_for(&s, "gateway", NULL);
	/* Left out if the machine has no IPv6. */
	if (access("/proc/net/if_inet6", F_OK) < 0)
		n--;
	for (i = 0; i < n; i++) {
		snprintf(ports[i], sizeof(ports[i]), "%d", dialled[i].port);
		add_argument(dialled[i].address);
		add_argument(ports[i]);
	}
	s.net = ROOM_NET_GATEWAY;
	room = start(&s);
	if (!room)
		return;
	check_int(room_listeners(room, fds, &room_err), 0);
	check_int(room_listeners(room, fds, &room_err), -E_INTERNAL);
	check(fds[ROOM_TCP4] >= 0 && fds[ROOM_UDP4] >= 0 && fds[ROOM_CAPTURE] == -1);
	for (i = 0; i < n; i++)
		answer_dialled(fds[strchr(dialled[i].address, ':') ? ROOM_TCP6 : ROOM_TCP4],
			dialled[i].port);
	answer_query(fds[ROOM_UDP4]);
	for (i = 0; i < ROOM_LISTENERS; i++)
		fd_close(fds[i]);
	room_free(finish(room, "done\n"));
}

static void gateway_is_trusted(void)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
	struct room_spec s;
	int fds[2];

	must(fd_pipe(fds) == 0);
	must(fd_write_all(fds[1], pem, sizeof(pem) - 1) == 0);
	close(fds[1]);
	spec_for(&s, "trust", pem, NULL);
	s.ca_fd = fds[0];
	run(&s);
	close(fds[0]);
}

static void a_gateway_without_certificate_is_an_error(void)
{
	struct room_spec s;
	struct room *room = NULL;
	int fds[2];

	must(fd_pipe(fds) == 0);
	close(fds[1]);
	spec_for(&s, "trust", "", NULL);
	s.ca_fd = fds[0];
	check_int(native_provider.create(&native_provider, &s, &room, &room_err), -E_NETWORK);
	room_spec_done(&s);
	close(fds[0]);
}

static void all(void)
{
	run_test(no_network);
	run_test(network_is_captured);
	run_test(gateway_is_trusted);
	run_test(a_gateway_without_certificate_is_an_error);
}

int main(int argc, char **argv)
{
	return test_rooms(argc, argv, all);
}
