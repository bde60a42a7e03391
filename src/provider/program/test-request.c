/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/asked.h"
#include "asked/request.h"
#include "base/fd.h"
#include "provider/program/words.h"
#include "tap.h"

#include <sys/socket.h>
#include <unistd.h>

static struct cloche_err err;

static void requests_are_read(void)
{
	static const struct {
		const char *text, *place, *script;
		int code;
	} rows[] = {
		{"cloche-provider 1\nend\n", NULL, NULL, 0},
		{"cloche-provider 1\nid x\nplace a@b\nfar echo\\0040\\0047a\\0047\\0012\nend\n",
			"a@b", "echo 'a'\n", 0},
		{"cloche-provider 1\nplace \\0000\nlater words\nend\n", "", NULL, 0},
		{"cloche-provider 1\nplace a\nplace b\nend\n", "b", NULL, 0},
		{"cloche-provider 2\nend\n", NULL, NULL, E_PROTOCOL},
		{"end\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nplace a\\\nend\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nplace a\\0400\nend\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nplace a\\0000\nend\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nplace a\\x41\nend\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nplace a\n", NULL, NULL, E_PROTOCOL},
		{"cloche-provider 1\nend", NULL, NULL, E_PROTOCOL},
		{"", NULL, NULL, E_PROTOCOL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(request_donep) struct request q = {0};
		int pair[2];

		must(fd_pipe(pair) == 0);
		must(fd_write_all(pair[1], rows[i].text, strlen(rows[i].text)) == 0);
		fd_close(pair[1]);
		check_int(request_read(&q, pair[0], &err), -rows[i].code);
		fd_close(pair[0]);
		if (rows[i].code == 0) {
			check((q.place == NULL) == (rows[i].place == NULL));
			check_z(q.place ? q.place : "", rows[i].place ? rows[i].place : "");
			check_z(q.script ? q.script : "", rows[i].script ? rows[i].script : "");
		}
	}
}

/* What follows belongs to the stream, also if it is there already. */
static void nothing_behind_the_end_is_read(void)
{
	static const char text[] = "cloche-provider 1\nend\nend\nbytes";

	for (int kind = 0; kind < 2; kind++) {
		_cleanup_(request_donep) struct request q = {0};
		char rest[32] = "";
		int pair[2];

		must((kind ? fd_pipe(pair) : fd_socketpair(SOCK_STREAM, pair)) == 0);
		must(fd_write_all(pair[1], text, strlen(text)) == 0);
		check_int(request_read(&q, pair[0], &err), 0);
		check_int(read(pair[0], rest, sizeof(rest) - 1), 9);
		check_z(rest, "end\nbytes");
		fd_close(pair[0]);
		fd_close(pair[1]);
	}
}

static void each_byte_arrives(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ASKED_MAX);
	_cleanup_(request_donep) struct request q = {.begun = true};
	char all[256];

	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	must(words_add_line(&text, "far", all, NULL) == 0);
	check_int(request_take_line(&q, str_prefix(buf_str(&text), buf_len(&text) - 1), &err), 0);
	check_z(q.script, all);
}

static void lines_are_bounded(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(2 * ASKED_LINE_MAX);
	_cleanup_(request_donep) struct request q = {0};
	int pair[2];
	pid_t child;

	must(buf_printf(&text, "cloche-provider 1\nfar %0*d\n", ASKED_LINE_MAX, 0) == 0);
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		fd_close(pair[0]);
		(void)!fd_write_all(pair[1], buf_data(&text), buf_len(&text));
		_exit(0);
	}
	fd_close(pair[1]);
	check_int(request_read(&q, pair[0], &err), -E_LIMIT);
	fd_close(pair[0]);
}

int main(void)
{
	run_test(requests_are_read);
	run_test(nothing_behind_the_end_is_read);
	run_test(each_byte_arrives);
	run_test(lines_are_bounded);
	return tap_done();
}
