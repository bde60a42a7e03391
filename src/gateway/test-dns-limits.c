/* SPDX-License-Identifier: Apache-2.0 */
/* What a room can take from the gateway by asking for names; the test moves the time. See
 * testing.h. */
#include "base/clock.h"
#include "clockwork.h"
#include "dns/message.h"
#include "gateway/testing.h"
#include "tap.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, MOMENT_MS = 100 };

static struct rig rig;
static int fd;

static void ask(unsigned number)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(DNS_UDP_MAX);
	char label[16];
	int n = snprintf(label, sizeof(label), "n%u", number);

	must(buf_add_str(&b, STR("\1\2\1\0\0\1\0\0\0\0\0\0")) == 0);
	must(buf_add_char(&b, (char)n) == 0 && buf_add(&b, label, (size_t)n) == 0);
	must(buf_add_str(&b, STR("\4test\0\0\1\0\1")) == 0);
	must(send(fd, buf_data(&b), buf_len(&b), 0) == (ssize_t)buf_len(&b));
}

/* The address that comes, or 0. */
static uint32_t answer(int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char packet[DNS_UDP_MAX];
	uint32_t address = 0;
	ssize_t n;

	if (poll(&p, 1, timeout_ms) != 1)
		return 0;
	n = recv(fd, packet, sizeof(packet), 0);
	must(n > 16);
	memcpy(&address, packet + n - 4, 4); /* it has one record, at the end */
	return ntohl(address);
}

static uint32_t resolve(unsigned number)
{
	ask(number);
	return answer(PATIENCE_MS);
}

/* How many names were logged. */
static unsigned logged(void)
{
	struct rig_frame *f;
	unsigned n = 0;

	while ((f = rig_recv(&rig, MOMENT_MS))) {
		struct net_event e;

		must(f->type == NET_EVENT && net_get_event(str_make(f->payload, f->n), &e));
		n += e.kind == NET_EVENT_DNS;
		free(f);
	}
	return n;
}

static void start(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};

	rig_start(&rig, &(struct rig_config){0});
	a.sin_port = htons(rig.dns_port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
}

static void stop(void)
{
	close(fd);
	check(rig_stop(&rig));
}

static void test_rate(void)
{
	start();
	for (unsigned i = 0; i < 2000; i++)
		must(resolve(1));
	ask(1);
	check(answer(MOMENT_MS) == 0);
	clock_pass(rig.pid, USEC_PER_SEC);
	check(answer(PATIENCE_MS) != 0);
	stop();
}

/* The one that was used longest ago gets another address. */
static void test_names(void)
{
	uint32_t first, second = 0;

	start();
	first = resolve(0);
	for (unsigned i = 1; i <= 8192; i++) {
		uint32_t address = resolve(i);

		must(address != 0);
		second = i == 1 ? address : second;
		if (i % 1000 == 0) {
			clock_pass(rig.pid, USEC_PER_SEC);
			(void)logged();
		}
	}
	check(resolve(1) == second);
	check(resolve(0) != first);
	stop();
}

static void test_log(void)
{
	enum { NAMES = 1024, A_SECOND = 200 };

	start();
	check(resolve(0) && resolve(0));
	check_int(logged(), 1);
	clock_pass(rig.pid, 60 * USEC_PER_SEC - USEC_PER_MSEC);
	must(resolve(0));
	check_int(logged(), 0);
	clock_pass(rig.pid, USEC_PER_MSEC);
	must(resolve(0));
	check_int(logged(), 1);
	for (unsigned i = 1; i < NAMES; i++) {
		if (i % A_SECOND == 0)
			clock_pass(rig.pid, USEC_PER_SEC);
		must(resolve(i));
	}
	check_int(logged(), NAMES - 1);
	clock_pass(rig.pid, USEC_PER_SEC);
	must(resolve(0));
	check_int(logged(), 0);
	must(resolve(NAMES));
	must(resolve(0)); /* it has made room */
	check_int(logged(), 2);
	stop();
}

int main(void)
{
	clock_hold();
	run_test(test_rate);
	run_test(test_names);
	run_test(test_log);
	return tap_done();
}
