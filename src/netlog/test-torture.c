/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "netlog/reader.h"

#include "tap.h"
#include "torture.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_back(int fd)
{
	_cleanup_(netlog_reader_freep) struct netlog_reader *r = netlog_reader_new(fd);
	struct netlog_event ev;
	int result;

	check(!r == torture_failed);
	if (!r)
		return;
	result = netlog_reader_next(r, &ev, NULL);
	check_int(result, torture_failed ? -E_NO_MEMORY : 1);
}

static void write_and_read(void)
{
	_cleanup_fd_ int fd = memfd_create("log", MFD_CLOEXEC);
	struct netlog_config config = NETLOG_CONFIG_DEFAULT;
	const struct netlog_event ev = {.kind = NETLOG_WARNING, .note = STR("note")};
	struct netlog *log;
	int r;

	must(fd >= 0);
	config.plain_fd = fd;
	log = netlog_new(&config);
	check(!log == torture_failed);
	if (!log)
		return;
	r = netlog_write(log, &ev);
	check_int(r, torture_failed ? -ENOMEM : 0);
	netlog_free(log);
	if (r < 0)
		return;
	must(lseek(fd, 0, SEEK_SET) == 0);
	read_back(fd);
}

static void test_torture(void)
{
	torture(write_and_read);
}

int main(void)
{
	run_test(test_torture);
	return tap_done();
}
