/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "netlog/reader.h"
#include <cloche/network_log.h>

#include <errno.h>
#include <fcntl.h>

enum { ENTRY_MAX = 256 * 1024 };

struct cloche_network_log {
	int fd;
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
	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (log->fd < 0)
		return err_sys(err, errno, "network log %s", path);
	log->reader = netlog_reader_new(log->fd);
	if (!log->reader)
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
	buf_done(&log->line);
	buf_done(&log->json);
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

cloche_network_summary cloche_network_log_summary(const cloche_network_log *log)
{
	return log->summary;
}
