/* SPDX-License-Identifier: Apache-2.0 */
/* Expect: 100-continue (RFC 9110 10.1.1), from the room to the origin and back. */
#include "base/clock.h"
#include "broker/test-seen.h"

#define SEC USEC_PER_SEC
#define ALLOW "domains: [a.test]\n"
#define OK "Content-Length: 2\r\nConnection: close\r\n\r\nok"

static int listener;
static size_t had; /* bytes of the body that came with the head */

static uint32_t ask(const char *method)
{
	return rig_open(&g, &(struct ask){.host = "a.test",
				    .method = method,
				    .target = "/",
				    .body = NET_BODY_LENGTH,
				    .length = 5,
				    .expects = true});
}

/* Take the request at the origin. Return the connection and whether it was asked. */
static int get(bool *ret_asked)
{
	char head[4096];
	int fd = accept_and_get(listener, head, sizeof(head));

	*ret_asked = strstr(head, "\r\nExpect: 100-continue\r\n") != NULL;
	check(strstr(head, "Content-Length: 5\r\n") != NULL);
	had = strlen(strstr(head, "\r\n\r\n") + 4);
	return fd;
}

static void send_body(uint32_t id)
{
	rig_data(&g, id, "hello", 5);
	rig_end(&g, id);
}

/* Take the body, answer, and close. */
static void answer(int fd, const char *text)
{
	char bytes[16];
	ssize_t n = 5 - (ssize_t)had;

	must(n == 0 || recv(fd, bytes, (size_t)n, MSG_WAITALL) == n);
	write_z(fd, text);
	close(fd);
}

static void wait_interim(uint32_t id)
{
	while (seen[id].interims == 0)
		must(take_frame(PATIENCE_MS));
}

static void begin(void)
{
	uint16_t port;

	listener = listen_at(8, &port);
	start(ALLOW, port);
}

static void end(void)
{
	stop();
	close(listener);
}

/* At the last moment the origin says that it takes the body, which then comes, and is answered. */
static void take_body(int fd, uint32_t id, const char *says)
{
	pass(SEC - 1);
	settle();
	check_int(seen[id].interims, 0);
	write_z(fd, says);
	wait_interim(id);
	send_body(id);
	answer(fd, "HTTP/1.1 200 OK\r\n" OK);
	wait_over(id);
	check(seen[id].status == 200 && seen[id].interims == 1);
}

/* The origin takes its time, and says 100. It may do so again. */
static void test_origin_says(void)
{
	begin();
	for (int i = 0; i < 2; i++) {
		uint32_t id = ask("PUT");
		bool asked;
		int fd = get(&asked);

		check(asked);
		take_body(fd, id, "HTTP/1.1 100 Continue\r\n\r\n");
	}
	end();
}

/* Its final answer comes before the body, and nothing of the body is sent. */
static void test_origin_refuses(void)
{
	begin();
	for (int i = 0; i < 2; i++) {
		uint32_t id = ask("POST");
		char bytes[8];
		bool asked;
		int fd = get(&asked);

		check(asked);
		write_z(fd, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
		wait_over(id);
		check(seen[id].status == 417 && seen[id].interims == 0);
		check_int(read(fd, bytes, sizeof(bytes)), 0);
		close(fd);
	}
	end();
}

/* Ask once more: whether the origin is asked, too. */
static bool is_asked(void)
{
	uint32_t id = ask("PUT");
	bool asked;
	int fd = get(&asked);

	settle();
	check_int(seen[id].interims, !asked);
	send_body(id);
	answer(fd, "HTTP/1.1 200 OK\r\n" OK);
	wait_over(id);
	return asked;
}

/* After a second the broker says 100 itself. What happens then says whether the origin is asked
 * another time. */
static void after_a_second(const char *interim, const char *status, bool again)
{
	uint32_t id;
	bool asked;
	int fd;

	begin();
	id = ask("PUT");
	fd = get(&asked);
	check(asked);
	pass(SEC - 1);
	settle();
	check_int(seen[id].interims, 0);
	pass(1);
	wait_interim(id);
	write_z(fd, interim);
	settle();
	send_body(id);
	answer(fd, status);
	wait_over(id);
	check(seen[id].status >= 200 && seen[id].interims == 1);
	check_int(is_asked(), again);
	end();
}

static void test_wait(void)
{
	after_a_second("", "HTTP/1.1 200 OK\r\n" OK, false);
	after_a_second("", "HTTP/1.1 404 Not Found\r\n" OK, false);
	after_a_second("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n" OK, true);
}

/* An origin that speaks HTTP/1.0 is not asked again. */
static void test_http10(void)
{
	uint32_t id;
	bool asked;
	int fd;

	begin();
	id = ask("PUT");
	send_body(id);
	fd = get(&asked);
	answer(fd, "HTTP/1.0 200 OK\r\n" OK);
	wait_over(id);
	/* The body is mostly there before the origin can be asked, and then nothing is learned. */
	check_int(is_asked(), !asked);
	id = ask("PUT");
	fd = get(&asked);
	write_z(fd, "HTTP/1.0 200 OK\r\n" OK);
	wait_over(id);
	close(fd);
	check(!is_asked());
	end();
}

/* A client that does not wait is not waited for, and teaches nothing. */
static void test_impatient(void)
{
	begin();
	for (int i = 0; i < 2; i++) {
		uint32_t id = ask("PUT");
		bool asked;
		int fd = get(&asked);

		check(asked);
		send_body(id);
		pass(2 * SEC);
		answer(fd, "HTTP/1.1 200 OK\r\n" OK);
		wait_over(id);
		check(seen[id].status == 200 && seen[id].interims == 0);
	}
	end();
}

/* A connection that was closed meanwhile: the question is asked anew, and answered once. */
static void test_again(void)
{
	uint32_t id;
	bool asked;
	int fd;

	begin();
	id = rig_open(&g, &(struct ask){.host = "a.test", .target = "/"});
	fd = accept_and_read(listener);
	write_z(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	wait_over(id);
	settle();
	id = ask("PUT");
	settle();
	close(fd);
	fd = get(&asked);
	check(asked);
	take_body(fd, id, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
	end();
}

/* After a refusal there is no 100, although the body is still to come. */
static void test_refused(void)
{
	uint32_t id;
	bool asked;

	begin();
	id = ask("POST");
	close(get(&asked));
	wait_over(id);
	check_int(seen[id].status, 502);
	pass(2 * SEC);
	settle();
	check_int(seen[id].interims, 0);
	end();
}

int main(void)
{
	clock_hold();
	run_test(test_origin_says);
	run_test(test_origin_refuses);
	run_test(test_wait);
	run_test(test_http10);
	run_test(test_impatient);
	run_test(test_again);
	run_test(test_refused);
	return tap_done();
}
