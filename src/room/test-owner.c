/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "room/owner.h"
#include "tap.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int diag;

/* A connected pair over loopback; the client's end is *ret. */
static int dial(int listener, int *ret, struct sockaddr_in *client, struct sockaddr_in *server)
{
	socklen_t n = sizeof(*server), m = sizeof(*client);

	must(getsockname(listener, (void *)server, &n) == 0);
	*ret = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(*ret, (void *)server, sizeof(*server)) == 0);
	must(getsockname(*ret, (void *)client, &m) == 0);
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

static void test_finds_a_child(void)
{
	_cleanup_fd_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in client, server;
	struct room_owner o;
	struct owner_budget budget = {0};
	int ours, theirs, gate[2];
	pid_t pid;

	must(bind(listener, (void *)&any, sizeof(any)) == 0 && listen(listener, 1) == 0);
	theirs = dial(listener, &ours, &client, &server);
	check(connection_owner(diag, getpid(), (void *)&client, (void *)&server, &budget, &o));
	check_int(o.pid, getpid());
	check(strstr(o.program, "test-room_owner") && o.name[0]);
	/* Held by a child alone. */
	must(pipe2(gate, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		char c;

		close(gate[1]);
		_exit(read(gate[0], &c, 1) != 0);
	}
	close(ours);
	/* It has cost something; if nothing is left nobody is looked for. */
	check(budget.left < 100 * (int64_t)USEC_PER_MSEC);
	budget.left = -1000 * (int64_t)USEC_PER_SEC;
	check(!connection_owner(diag, getpid(), (void *)&client, (void *)&server, &budget, &o));
	budget = (struct owner_budget){0};
	check(connection_owner(diag, getpid(), (void *)&client, (void *)&server, &budget, &o));
	check_int(o.pid, pid);
	/* Not among the processes that are looked at, and not there at all. */
	close(gate[1]);
	waitpid(pid, NULL, 0);
	check(!connection_owner(diag, getpid(), (void *)&client, (void *)&server, &budget, &o));
	client.sin_port = htons(1);
	check(!connection_owner(diag, getpid(), (void *)&client, (void *)&server, &budget, &o));
	close(gate[0]);
	close(theirs);
}

/* However long each look takes, looks take a tenth of the time. */
static void test_budget(void)
{
	struct owner_budget b = {0};
	uint64_t now = 1000 * USEC_PER_SEC, end = now + 100 * USEC_PER_SEC, spent = 0;
	unsigned at_once = 0;

	for (; owner_budget_allows(&b, now); at_once++)
		owner_budget_spend(&b, 10 * USEC_PER_MSEC);
	check_int(at_once, 10);
	for (; now < end; now += USEC_PER_MSEC) {
		if (!owner_budget_allows(&b, now))
			continue;
		owner_budget_spend(&b, 120 * USEC_PER_MSEC);
		spent += 120 * USEC_PER_MSEC;
		now += 120 * USEC_PER_MSEC;
	}
	check(spent > 9 * USEC_PER_SEC && spent < 11 * USEC_PER_SEC);
}

int main(void)
{
	run_test(test_budget);
	diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (diag < 0) {
		printf("1..0 # SKIP no socket diagnostics\n");
		return 0;
	}
	run_test(test_finds_a_child);
	close(diag);
	return tap_done();
}
