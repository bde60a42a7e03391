/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "session/events.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int dirfd_ = -1;

static void raw_write(const char *text, int flags)
{
	int fd = openat(dirfd_, SESSION_EVENTS, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	fd_close(fd);
}

static void check_file(const char *want)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);

	must(fd_read_file(dirfd_, SESSION_EVENTS, &text, NULL) == 0);
	check_str(buf_str(&text), want);
}

static void append(struct session_events *w, int n)
{
	_cleanup_json_ json_t *event = json_pack("{s:s,s:i}", "type", "x", "n", n);

	must(session_events_append(w, event, NULL) == 0);
}

static void check_numbers(const json_t *events, const char *want)
{
	_cleanup_(buf_donep) struct buf got = BUF_INIT(1000);
	const json_t *e;
	size_t i;

	json_array_foreach (events, i, e)
		must(buf_printf(&got, "%d ", (int)json_integer_value(json_object_get(e, "n"))) ==
			0);
	check_str(buf_str(&got), want);
}

static void check_reply(uint64_t offset, const char *want)
{
	_cleanup_json_ json_t *events = json_array();

	check_int(session_events_reply_at(dirfd_, offset, events, NULL), 0);
	check_numbers(events, want);
}

static void test_replies_are_separated(void)
{
	struct session_events w = SESSION_EVENTS_INIT;
	uint64_t second;

	raw_write("", O_TRUNC);
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	check_int(w.offset, 0);
	append(&w, 1);
	append(&w, 2);
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	second = w.offset;
	append(&w, 3);
	session_events_end(&w);
	check_file("{\"type\": \"x\", \"n\": 1}\n{\"type\": \"x\", \"n\": 2}\n\n{\"type\": \"x\", "
		   "\"n\": 3}\n");
	check_reply(0, "1 2 ");
	check_reply(second, "3 ");
	check_reply(second + 1000, "");
	/* a reply without events leaves no second blank line */
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	append(&w, 4);
	session_events_end(&w);
	check_reply(second, "3 ");
	check_reply(second + 23, "4 ");
}

static void test_torn_line(void)
{
	struct session_events w = SESSION_EVENTS_INIT;

	raw_write("{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"te", O_TRUNC);
	check_reply(0, "1 2 ");
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	append(&w, 4);
	session_events_end(&w);
	check_file("{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"te\n\n{\"type\": \"x\", \"n\": 4}\n");
	check_reply(0, "1 2 ");
	raw_write("x", O_TRUNC); /* the shortest torn line */
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	append(&w, 5);
	session_events_end(&w);
	check_file("x\n\n{\"type\": \"x\", \"n\": 5}\n");
	/* only the newline is missing */
	raw_write("{\"n\":1}\n{\"n\":2}", O_TRUNC);
	check_reply(0, "1 2 ");
}

static void test_bad_lines_are_passed_over(void)
{
	raw_write("nonsense\n[1]\n17\n{\"n\":1}\n{\"n\":2\n{\"n\":\"\xff\"}\n{\"n\":3}\n\n{\"n\":4}"
		  "\n",
		O_TRUNC);
	check_reply(0, "1 3 ");
}

static void test_missing_file(void)
{
	unlinkat(dirfd_, SESSION_EVENTS, 0);
	check_reply(0, "");
}

static void test_not_a_file(void)
{
	struct session_events w = SESSION_EVENTS_INIT;

	unlinkat(dirfd_, SESSION_EVENTS, 0);
	must(symlinkat("/etc/passwd", dirfd_, SESSION_EVENTS) == 0);
	check(session_events_begin(&w, dirfd_, NULL) < 0);
	unlinkat(dirfd_, SESSION_EVENTS, 0);
	must(mkfifoat(dirfd_, SESSION_EVENTS, 0600) == 0);
	check(session_events_begin(&w, dirfd_, NULL) < 0);
	unlinkat(dirfd_, SESSION_EVENTS, 0);
}

static void test_limit_of_a_reply(void)
{
	_cleanup_json_ json_t *event = json_object();
	struct session_events w = SESSION_EVENTS_INIT;
	char *text = malloc((8U << 20) + 1);
	uint64_t size;

	must(text);
	memset(text, 'x', 8U << 20);
	text[8U << 20] = '\0';
	must(json_object_set_new(event, "t", json_string(text)) == 0);
	must(session_events_begin(&w, dirfd_, NULL) == 0);
	for (int i = 0; i < 10; i++)
		must(session_events_append(&w, event, NULL) == 0);
	check(w.size <= SESSION_EVENTS_MAX);
	check_int(w.size / (8U << 20), 7);
	size = w.size;
	append(&w, 1); /* a small one still fits */
	check(w.size > size);
	session_events_end(&w);
	unlinkat(dirfd_, SESSION_EVENTS, 0);
	free(text);
}

int main(void)
{
	tap_fast_dir(dir);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd_ >= 0);
	run_test(test_replies_are_separated);
	run_test(test_torn_line);
	run_test(test_bad_lines_are_passed_over);
	run_test(test_missing_file);
	run_test(test_not_a_file);
	run_test(test_limit_of_a_reply);
	fd_close(dirfd_);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
