/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host, on file systems with unnamed files and without them. */
#include "base/fd.h"
#include "fileclient/session.h"
#include "fs/fs.h"
#include "tap.h"

#include <cloche/host_file.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static bool no_unnamed;

/* All calls come here by the linker's --wrap; which name they have depends on the C library. */
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat64(int at, const char *path, int flags, ...)
	__attribute__((alias("__wrap_openat")));

int __wrap_openat(int at, const char *path, int flags, ...)
{
	va_list v;
	mode_t mode;

	va_start(v, flags);
	mode = va_arg(v, mode_t);
	va_end(v);
	if (no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, at, path, flags, mode);
}

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void check_text(const char *name, const char *want)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	must(fd_read_file(AT_FDCWD, at(name), &b, NULL) == 0 && buf_cstr(&b));
	check_str(buf_str(&b), want);
}

static unsigned count(void)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	must(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int write_file(const char *name, const char *text, bool over, struct cloche_err *err)
{
	cloche_host_file *f;
	int fd, r = cloche_host_file_begin(at(name), 0640, &f, &fd, err);

	if (r < 0)
		return r;
	must(fd_write_all(fd, text, strlen(text)) == 0);
	return cloche_host_file_commit(f, over, err);
}

static void write_all_ways(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	cloche_host_file *f;
	int fd;

	check_int(write_file("a", "one", false, &err), 0);
	check_text("a", "one");
	check_int(write_file("a", "two", false, &err), -E_EXISTS);
	check_text("a", "one");
	check_int(write_file("a", "three", true, &err), 0);
	check_text("a", "three");
	must(symlinkat("a", AT_FDCWD, at("l")) == 0);
	check_int(write_file("l", "four", true, &err), 0);
	check_text("a", "three");
	check_text("l", "four");
	check_int(cloche_host_file_begin(at("b"), 0600, &f, &fd, &err), 0);
	cloche_host_file_abort(f);
	check_int((int)count(), 2);
	must(unlink(at("a")) == 0 && unlink(at("l")) == 0);
}

static void unnamed(void)
{
	write_all_ways();
}

static void named(void)
{
	no_unnamed = true;
	write_all_ways();
	no_unnamed = false;
}

static void reading(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int fd;

	must(write_file("a", "text", false, &err) == 0);
	check_int(cloche_host_open(at("a"), &fd, &err), 0);
	fd_close(fd);
	must(symlinkat("a", AT_FDCWD, at("l")) == 0 && mkfifo(at("f"), 0600) == 0);
	check(cloche_host_open(at("l"), &fd, &err) < 0 && strstr(err.message, "symbolic link"));
	check(cloche_host_open(at("f"), &fd, &err) < 0 && strstr(err.message, "regular"));
	check(cloche_host_open(dir, &fd, &err) < 0);
	check_int(cloche_host_open("/dev/null", &fd, &err), 0);
	fd_close(fd);
}

int main(void)
{
	tap_dir(dir);
	run_test(unnamed);
	run_test(named);
	run_test(reading);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
