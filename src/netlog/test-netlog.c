/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "netlog/netlog.h"
#include "netlog/reader.h"

#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct netlog_event allowed = {.kind = NETLOG_REQUEST,
	.allowed = true,
	.method = STR("GET"),
	.url = STR("https://x.com/"),
	.status = 200};
static const struct netlog_event blocked = {
	.kind = NETLOG_REQUEST, .method = STR("GET"), .url = STR("https://e.com/"), .status = 403};

/* A file without a name, as a log. */
static int make_file(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	must(fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0);
	return fd;
}

static void read_file(int fd, struct buf *out)
{
	must(lseek(fd, 0, SEEK_SET) == 0 && fd_read_to_end(fd, out) == 0);
}

static size_t count_lines(struct str s, struct str beginning)
{
	size_t n = 0;

	while (s.n > 0) {
		n += str_starts(s, beginning);
		s = str_from_index(s, str_chr(s, '\n') + 1);
	}
	return n;
}

static void test_forms(void)
{
	_cleanup_fd_ int plain = make_file(), json = make_file(), live = make_file();
	_cleanup_(buf_donep) struct buf p = BUF_INIT(65536), j = BUF_INIT(65536),
					l = BUF_INIT(65536);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log;
	struct netlog_counts counts;

	config.plain_fd = plain;
	config.json_fd = json;
	config.live_fd = live;
	log = netlog_new(&config);
	must(log);
	check_int(netlog_write(log, &allowed), 0);
	check_int(netlog_write(log, &blocked), 0);
	counts = netlog_counts(log);
	check(counts.allowed == 1 && counts.blocked == 1 && counts.suppressed == 0);
	log = netlog_free(log);
	read_file(plain, &p);
	read_file(json, &j);
	read_file(live, &l);
	check_str(buf_str(&p),
		"ALLOWED GET https://x.com/ -> 200\nBLOCKED GET https://e.com/ -> 403\n");
	check_str(buf_str(&l), "[net] ALLOWED GET https://x.com/ -> 200\n[net] BLOCKED GET "
			       "https://e.com/ -> 403\n");
	check_int(count_lines(buf_str(&j), STR("{\"time\":\"20")), 2);
}

static void test_no_files(void)
{
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log = netlog_new(&config);

	must(log);
	check_int(netlog_write(log, &allowed), 0);
	check_int(netlog_counts(log).allowed, 1);
	check_int(netlog_tick(log), 0);
	check(netlog_free(log) == NULL);
}

/* Each line is one write: a packet socket keeps them apart. */
static void test_one_write(void)
{
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	int fds[2];
	char text[4096];
	struct netlog *log;

	must(fd_socketpair(SOCK_SEQPACKET, fds) == 0);
	config.plain_fd = fds[0];
	log = netlog_new(&config);
	check_int(netlog_write(log, &allowed), 0);
	check_int(netlog_write(log, &blocked), 0);
	check_int(read(fds[1], text, sizeof(text)), strlen("ALLOWED GET https://x.com/ -> 200\n"));
	check_int(read(fds[1], text, sizeof(text)), strlen("BLOCKED GET https://e.com/ -> 403\n"));
	netlog_free(log);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

static const struct netlog_event intent = {
	.kind = NETLOG_INTENT, .method = STR("GET"), .url = STR("https://x.com/")};

/* What may wait goes out with what may not, before it, and in one write. */
static void test_later(void)
{
	static const char first[] = "ALLOWED GET https://x.com/ -> 200\n";
	static const char second[] = "BLOCKED GET https://e.com/ -> 403\n";
	_cleanup_fd_ int json = make_file();
	_cleanup_(buf_donep) struct buf j = BUF_INIT(65536);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	int fds[2];
	char text[4096];
	struct netlog *log;

	must(fd_socketpair(SOCK_SEQPACKET, fds) == 0 && fd_set_nonblock(fds[1], true) == 0);
	config.plain_fd = fds[0];
	config.json_fd = json;
	log = netlog_new(&config);
	must(log);
	check_int(netlog_write_later(log, &allowed), 0);
	check_int(read(fds[1], text, sizeof(text)), -1);
	check_int(netlog_write_later(log, &blocked), 0);
	check_int(netlog_write(log, &intent), 0);
	check_int(read(fds[1], text, sizeof(text)), strlen(first) + strlen(second));
	check(memcmp(text, first, strlen(first)) == 0);
	read_file(json, &j);
	check_int(count_lines(buf_str(&j), STR("{")), 3);
	check(str_find(buf_str(&j), STR("\"intent\"")) > str_find(buf_str(&j), STR("\"blocked\"")));
	check_int(netlog_write_later(log, &blocked), 0);
	check_int(netlog_flush(log), 0);
	check_int(read(fds[1], text, sizeof(text)), strlen(second));
	check_int(netlog_flush(log), 0);
	check_int(read(fds[1], text, sizeof(text)), -1);
	/* The last word, too. */
	check_int(netlog_write_later(log, &blocked), 0);
	check_int(netlog_take_lost(log), 0);
	netlog_free(log);
	check_int(read(fds[1], text, sizeof(text)), strlen(second));
	fd_close(fds[0]);
	fd_close(fds[1]);
}

/* Many are not kept for ever. */
static void test_much_later(void)
{
	_cleanup_fd_ int plain = make_file();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1U << 20);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log;

	config.plain_fd = plain;
	log = netlog_new(&config);
	must(log);
	for (int i = 0; i < 5000; i++)
		check_int(netlog_write_later(log, &allowed), 0);
	read_file(plain, &text);
	check(count_lines(buf_str(&text), STR("ALLOWED")) > 3000);
	netlog_free(log);
	buf_clear(&text);
	read_file(plain, &text);
	check_int(count_lines(buf_str(&text), STR("ALLOWED")), 5000);
}

/* An event that could not be written is counted, also if another one was in its way. */
static void test_later_lost(void)
{
	_cleanup_fd_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log;

	must(full >= 0);
	config.json_fd = full;
	log = netlog_new(&config);
	must(log);
	check_int(netlog_write_later(log, &allowed), 0);
	check_int(netlog_write_later(log, &allowed), 0);
	check_int(netlog_flush(log), -ENOSPC);
	check_int(netlog_write_later(log, &allowed), 0);
	check_int(netlog_write_later(log, &intent), 0);
	check_int(netlog_write(log, &allowed), -ENOSPC);
	check_int(netlog_take_lost(log), 3);
	check_int(netlog_take_lost(log), 0);
	/* Nothing waits, and still the intent is not on record. */
	check_int(netlog_flush(log), -ENOSPC);
	check_int(netlog_flush(log), 0);
	netlog_free(log);
}

static void test_disk_full(void)
{
	_cleanup_fd_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log;

	must(full >= 0);
	config.plain_fd = full;
	log = netlog_new(&config);
	check_int(netlog_write(log, &allowed), -ENOSPC);
	netlog_free(log);
	config.plain_fd = -1;
	config.json_fd = full;
	log = netlog_new(&config);
	check_int(netlog_write(log, &allowed), -ENOSPC);
	netlog_free(log);
	/* the live view may fail */
	config.json_fd = -1;
	config.live_fd = full;
	log = netlog_new(&config);
	check_int(netlog_write(log, &allowed), 0);
	netlog_free(log);
}

/* A line that was cut off by the end of the disk is reported, and does not swallow the next one. */
static void test_torn(void)
{
	char path[TAP_DIR_BYTES];
	_cleanup_fd_ int fd = tap_file(path);
	_cleanup_(buf_donep) struct buf text = BUF_INIT(65536);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct rlimit old, small;
	struct netlog *log;

	must(fcntl(fd, F_SETFL, O_APPEND) == 0 && unlink(path) == 0);
	must(getrlimit(RLIMIT_FSIZE, &old) == 0);
	small = (struct rlimit){40, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	config.plain_fd = fd;
	log = netlog_new(&config);
	must(setrlimit(RLIMIT_FSIZE, &small) == 0);
	check_int(netlog_write(log, &allowed), 0);
	check_int(netlog_write(log, &allowed), -ENOSPC); /* takes a part */
	check_int(netlog_write(log, &allowed), -EFBIG);  /* takes nothing */
	must(setrlimit(RLIMIT_FSIZE, &old) == 0);
	check_int(netlog_write(log, &blocked), 0);
	netlog_free(log);
	read_file(fd, &text);
	check_str(buf_str(&text),
		"ALLOWED GET https://x.com/ -> 200\nALLOWE\nBLOCKED GET https://e.com/ -> 403\n");
}

static void test_flood(void)
{
	_cleanup_fd_ int plain = make_file();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1U << 20);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog_event failed = allowed;
	struct netlog_counts counts;
	struct netlog *log;
	size_t written;

	config.plain_fd = plain;
	config.flood_per_sec = 1;
	config.flood_burst = 10;
	log = netlog_new(&config);
	for (int i = 0; i < 1000; i++)
		check_int(netlog_write(log, &blocked), 0);
	/* what was allowed is always on record, also if it was sent and then failed */
	for (int i = 0; i < 100; i++)
		check_int(netlog_write(log, &allowed), 0);
	failed.kind = NETLOG_ERROR;
	check_int(netlog_write(log, &failed), 0);
	counts = netlog_counts(log);
	check(counts.blocked == 1000 && counts.allowed == 100);
	check(counts.suppressed >= 980 && counts.suppressed <= 990);
	netlog_free(log);
	read_file(plain, &text);
	written = count_lines(buf_str(&text), STR("BLOCKED"));
	check_int(written + counts.suppressed, 1000);
	check_int(count_lines(buf_str(&text), STR("ALLOWED")), 100);
	check_int(count_lines(buf_str(&text), STR("ERROR")), 1);
	check(count_lines(buf_str(&text), STR("WARNING: ")) >= 1);
	check(str_find(buf_str(&text), STR(" events suppressed (flood)\n")) < buf_len(&text));
}

static void test_no_limit(void)
{
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog *log;

	config.flood_per_sec = 0;
	log = netlog_new(&config);
	for (int i = 0; i < 10000; i++)
		check_int(netlog_write(log, &blocked), 0);
	check_int(netlog_counts(log).suppressed, 0);
	netlog_free(log);
}

/* The kept log has its last lines whole, and takes no more room than it may. */
static void test_kept(void)
{
	char path[TAP_DIR_BYTES];
	_cleanup_fd_ int fd = tap_file(path), in = -1;
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	struct netlog_reader *r;
	struct netlog_event ev = blocked, got;
	struct netlog *log;
	uint64_t first = 0, last = 0;
	struct stat st;

	must(fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0);
	config.kept_fd = fd;
	config.kept_max = 64 << 10;
	config.flood_per_sec = 0;
	log = netlog_new(&config);
	must(log);
	for (ev.status = 1; ev.status <= 999; ev.status++) {
		struct netlog_event beginning = allowed;

		beginning.kind = NETLOG_INTENT;
		check_int(netlog_write(log, &beginning), 0);
		check_int(netlog_write(log, &ev), 0);
	}
	netlog_free(log);
	must(fstat(fd, &st) == 0);
	check(st.st_size > 100 << 10 && st.st_blocks * 512 <= 88 << 10);
	in = open(path, O_RDONLY | O_CLOEXEC);
	r = netlog_reader_new(in);
	must(in >= 0 && r);
	while (netlog_reader_next(r, &got, NULL) > 0) {
		check(got.kind == NETLOG_REQUEST &&
			(last == 0 || (uint64_t)got.status == last + 1));
		last = (uint64_t)got.status;
		first = first ? first : last;
	}
	check(first > 1 && first < 700);
	check_int(last, 999);
	netlog_reader_free(r);
	unlink(path);
}

int main(void)
{
	run_test(test_forms);
	run_test(test_no_files);
	run_test(test_one_write);
	run_test(test_later);
	run_test(test_much_later);
	run_test(test_later_lost);
	run_test(test_disk_full);
	run_test(test_torn);
	run_test(test_flood);
	run_test(test_no_limit);
	run_test(test_kept);
	return tap_done();
}
