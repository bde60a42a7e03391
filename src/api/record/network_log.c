/* SPDX-License-Identifier: Apache-2.0 */
#include "api/record/network_log.h"
#include "base/fd.h"
#include "job/job.h"
#include "netlog/reader.h"
#include "record/netlogs.h"
#include <cloche/network_log.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRY_MAX = 256 * 1024 };

struct cloche_network_log {
	int fd, watch; /* watch: inotify; -1: nobody has waited yet */
	char *path;    /* as it was opened, for messages */
	struct netlog_reader *reader;
	cloche_network_summary summary;
	struct buf line, json;
};

DEFINE_CLEANUP(cloche_network_log, cloche_network_log_close)

int cloche_network_log_open(const char *path, cloche_network_log **ret, cloche_err *err)
{
	_cleanup_(cloche_network_log_closep) cloche_network_log *log = calloc(1, sizeof(*log));

	if (!log)
		return err_nomem(err);
	log->line = log->json = BUF_INIT(ENTRY_MAX);
	log->watch = -1;
	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (log->fd < 0)
		return err_sys(err, errno, "network log %s", path);
	log->reader = netlog_reader_new(log->fd);
	log->path = strdup(path);
	if (!log->reader || !log->path)
		return err_nomem(err);
	*ret = TAKE_PTR(log);
	return 0;
}

void cloche_network_log_close(cloche_network_log *log)
{
	if (!log)
		return;
	netlog_reader_free(log->reader);
	fd_close(log->fd);
	fd_close(log->watch);
	buf_done(&log->line);
	buf_done(&log->json);
	free(log->path);
	free(log);
}

/* Return the text without its line end, terminated, or NULL if out of memory. */
static const char *network_log_finish(struct buf *b)
{
	if (str_ends(buf_str(b), STR("\n")))
		b->tail--;
	return buf_cstr(b);
}

int cloche_network_log_next(cloche_network_log *log, cloche_network_entry *ret, cloche_err *err)
{
	struct netlog_event event;
	int r = netlog_reader_next(log->reader, &event, err);

	if (r == 0)
		r = netlog_reader_check(log->reader, log->path, err);
	if (r <= 0)
		return r;
	netlog_summary_add(&log->summary, &event);
	buf_clear(&log->line);
	buf_clear(&log->json);
	if (netlog_event_show(&event, &log->line) < 0 || netlog_format_json(&event, &log->json) < 0)
		return err_nomem(err);
	ret->blocked = netlog_event_is_blocked(&event);
	ret->line = network_log_finish(&log->line);
	ret->json = network_log_finish(&log->json);
	return ret->line && ret->json ? 1 : err_nomem(err);
}

int cloche_network_log_find(const char *sandbox, char **ret, cloche_err *err)
{
	return netlogs_find(sandbox, ret, err);
}

int cloche_network_log_skip(cloche_network_log *log, cloche_err *err)
{
	return netlog_reader_skip(log->reader, err);
}

int network_log_watch(cloche_network_log *log, struct cloche_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", log->fd);
	log->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (log->watch < 0 || inotify_add_watch(log->watch, path, IN_MODIFY | IN_CLOSE_WRITE) < 0)
		return err_sys(err, errno, "watch the network log");
	netlog_reader_follow(log->reader);
	return log->watch;
}

void network_log_settle(cloche_network_log *log)
{
	char events[4096];

	while (read(log->watch, events, sizeof(events)) > 0)
		;
}

/* The watch begins before the file is looked at, so nothing is missed. */
int cloche_network_log_wait(cloche_network_log *log, cloche_err *err)
{
	int r = log->watch < 0 ? network_log_watch(log, err) : 0;

	for (;;) {
		off_t at = lseek(log->fd, 0, SEEK_CUR);
		bool open = netlog_is_open(log->fd);
		struct stat st;

		if (r < 0)
			return r;
		if (fstat(log->fd, &st) < 0)
			return err_sys(err, errno, "look at the network log");
		if (st.st_size > at)
			return 1;
		if (!open)
			return 0;
		r = job_wait_fd(log->watch, POLLIN, -1);
		if (r < 0)
			return err_sys(err, -r, "wait for the network log");
		network_log_settle(log);
	}
}

cloche_network_summary cloche_network_log_summary(const cloche_network_log *log)
{
	return log->summary;
}
