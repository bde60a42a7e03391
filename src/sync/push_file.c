/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/internal.h"

#include <cloche/files.h>
#include <unistd.h>

struct push_file {
	int fd;
	int error; /* errno of a read that failed */
	struct sync_report *report;
};

static long push_file_read(void *user, void *data, size_t size)
{
	struct push_file *p = user;
	ssize_t n = read(p->fd, data, size);

	p->error = n < 0 ? errno : 0;
	p->report->bytes += (uint64_t)MAX(n, 0);
	if (p->report->progress)
		p->report->progress(p->report->user);
	return n;
}

static bool push_file_is_there(cloche_files *f, const char *name)
{
	cloche_file_stat st;

	return cloche_files_stat(f, name, false, &st, NULL) == 0;
}

int sync_push_file(cloche_files *f, int fd, const struct sync_options *o, const char *name,
	bool maybe_there, struct sync_report *report, struct cloche_err *err)
{
	struct push_file p = {.fd = fd, .report = report};
	struct stat st;
	int r;

	if (o->what == SYNC_NONE)
		return 0;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "look at the file");
	if (maybe_there && push_file_is_there(f, name))
		return 0;
	r = cloche_files_write(
		f, name, 0, st.st_mode & 0777, cloche_from_fn(push_file_read, &p), err);
	if (p.error)
		return err_sys(err, p.error, "read the file");
	report->entries += r == 0;
	return r;
}
