/* SPDX-License-Identifier: Apache-2.0 */
/* The requests beside a log, as a program gets them. */
#include "base/fd.h"
#include "base/str.h"
#include "fs/fs.h"
#include <cloche/state.h>
#include <tap.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

static const char requests[] =
	"{\"t\":10,\"e\":1,\"request\":{\"method\":\"POST\",\"url\":\"https://a.test/x\","
	"\"headers\":[[\"A\",\"b\\u00e9\"]]}}\n"
	"{\"t\":11,\"e\":1,\"sent\":\"aGVs\"}\n"
	"{\"t\":12,\"e\":4,\"request\":{\"method\":\"GET\",\"url\":\"http://b.test/\","
	"\"headers\":[]}}\n"
	"{\"t\":13,\"e\":1,\"sent\":\"bG8=\"}\n"
	"{\"t\":14,\"e\":1,\"sent_end\":true}\n"
	"{\"t\":15,\"e\":1,\"response\":{\"status\":200,\"headers\":[]}}\n"
	"{\"t\":16,\"e\":1,\"data\":\"AP8=\"}\n"
	"{\"t\":17,\"e\":1,\"end\":true}\n"
	"{\"t\":18,\"e\":4,\"refused\":{\"status\":403,\"reason\":\"path\"}}\n";

static void make(const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	fd_close(fd);
}

static cloche_oplog *open_log(const char *name)
{
	cloche_oplog *log;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	must(cloche_oplog_open_file(path, &log, NULL) == 0);
	return log;
}

struct body {
	char text[16];
	size_t n;
};

static bool gather(const void *bytes, size_t length, void *user)
{
	struct body *b = user;

	must(b->n + length <= sizeof(b->text));
	memcpy(b->text + b->n, bytes, length);
	b->n += length;
	return true;
}

static void check_body(cloche_oplog *log, enum cloche_body which, const char *want, size_t n)
{
	struct body b = {.n = 0};

	check_int(cloche_oplog_read_body(log, 1, which, gather, &b, NULL), 0);
	check(b.n == n && memcmp(b.text, want, n) == 0);
}

struct seen {
	cloche_oplog *log;
	unsigned n, most;
};

static bool see(const cloche_request *q, void *user)
{
	struct seen *s = user;

	if (q->number == 1) {
		check(q->time_us == 10 && q->ended_us == 17 && q->status == 200 && !q->refused);
		check_z(q->method, "POST");
		check_z(q->url, "https://a.test/x");
		check(q->request_bytes == 5 && q->request_is_whole);
		check(q->response_bytes == 2 && q->response_is_whole && !q->upgraded);
		check_z(q->json,
			"{\"op\":\"net.request\",\"args\":{\"number\":1,\"method\":\"POST\","
			"\"url\":"
			"\"https://a.test/x\",\"headers\":[[\"A\",\"b\xc3\xa9\"]],\"bytes\":5,"
			"\"whole\":true,\"response\":{\"status\":200,\"headers\":[],\"bytes\":2,"
			"\"whole\":true},\"ended\":17},\"t\":10}");
		check_body(s->log, CLOCHE_BODY_REQUEST, "hello", 5);
		check_body(s->log, CLOCHE_BODY_RESPONSE, "\0\xff", 2);
	} else {
		check(q->number == 4 && q->status == 403 && q->ended_us == 0);
		check(!q->request_is_whole && !q->response_is_whole);
		check_z(q->refused, "path");
	}
	return ++s->n < s->most;
}

static unsigned count(cloche_oplog *log, uint64_t after, unsigned most)
{
	struct seen s = {.log = log, .most = most};

	check_int(cloche_oplog_requests(log, after, see, &s, NULL), 0);
	return s.n;
}

static void test_read(void)
{
	cloche_oplog *log;

	make("log.jsonl", "");
	make("log.net", requests);
	log = open_log("log.jsonl");
	check_int(count(log, 0, 10), 2);
	check_int(count(log, 0, 1), 1);
	check_int(count(log, 1, 10), 1);
	check_int(count(log, 4, 10), 0);
	check_int(cloche_oplog_read_body(log, 2, CLOCHE_BODY_REQUEST, gather, NULL, NULL),
		-CLOCHE_E_NOT_FOUND);
	cloche_oplog_free(log);
}

static void test_none(void)
{
	cloche_oplog *log;

	make("alone.jsonl", "");
	log = open_log("alone.jsonl");
	check_int(count(log, 0, 10), 0);
	cloche_oplog_free(log);
}

static void test_corrupt(void)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_oplog *log;

	make("bad.jsonl", "");
	make("bad.net", "{}\n");
	log = open_log("bad.jsonl");
	check_int(cloche_oplog_requests(log, 0, see, NULL, &err), -CLOCHE_E_CORRUPT);
	check(strstr(err.message, "line 1") != NULL);
	cloche_oplog_free(log);
}

int main(void)
{
	tap_dir(dir);
	run_test(test_read);
	run_test(test_none);
	run_test(test_corrupt);
	(void)fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
