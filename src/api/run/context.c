/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the file of a context has one line of fixed length: the number of its
 * interpreter process, how many callers have come, the runtime, and whether code is being executed.
 * A lock on the first byte guards that line. Each caller takes the next number and locks the byte
 * of that number before it releases the guard. It is a caller's turn when it can lock the bytes of
 * all smaller numbers. So callers get their turns in the order in which they came, and the kernel
 * releases the place of one that dies.
 *
 * No process in the room can reach these files. */
#include "api/run/context.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "contexts"
#define EXECUTES '+'

enum { MAX_CONTEXTS = 64, LINE = 10 + 1 + 20 + 1 + CONTEXT_RUNTIME_MAX + 3 };

void context_done(struct context_file *c)
{
	c->fd = fd_close(c->fd);
}

int context_check_name(const char *name, struct cloche_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
			  others[] = "0123456789._-";
	size_t n = strlen(name), good = 0;

	while (name[good] &&
		(strchr(letters, name[good]) || (good > 0 && strchr(others, name[good]))))
		good++;
	if (n > 0 && n <= CONTEXT_NAME_MAX && good == n)
		return 0;
	return err_set(err, E_USAGE,
		"a context's name is a letter, then letters, digits and . _ -, %d at most",
		CONTEXT_NAME_MAX);
}

/* --- the line --- */

static int lock(struct context_file *c, short type, off_t from, off_t n, int command)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = n};
	int r;

	do
		r = fcntl(c->fd, command, &l);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int read_line(struct context_file *c, struct cloche_err *err)
{
	char line[LINE];
	struct str rest = STR_NULL;
	uint64_t number = 0, tickets = 0;
	ssize_t n = pread(c->fd, line, sizeof(line), 0);
	size_t at;

	if (n < 0)
		return err_sys(err, errno, "read the file of a context");
	c->number = 0;
	c->tickets = 0;
	c->runtime[0] = '\0';
	c->executes = false;
	if (n == 0)
		return 0;
	rest = str_make(line, (size_t)n);
	at = str_chr(rest, ' ');
	if (n != sizeof(line) || parse_u64(str_prefix(rest, at), UINT32_MAX, &number) < 0)
		return err_set(err, E_CORRUPT, "the file of a context is damaged");
	rest = str_from_index(rest, at + 1);
	at = str_chr(rest, ' ');
	if (parse_u64(str_prefix(rest, at), INT64_MAX - 1, &tickets) < 0)
		return err_set(err, E_CORRUPT, "the file of a context is damaged");
	rest = str_from_index(rest, at + 1);
	c->executes = line[LINE - 2] == EXECUTES;
	rest = str_prefix(rest, MIN(str_chr(rest, ' '), (size_t)CONTEXT_RUNTIME_MAX));
	memcpy(c->runtime, rest.p, rest.n);
	c->runtime[rest.n] = '\0';
	c->number = (uint32_t)number;
	c->tickets = tickets;
	return 0;
}

static int write_line(struct context_file *c, struct cloche_err *err)
{
	char line[LINE + 1];

	snprintf(line, sizeof(line), "%010u %020llu %-*s %c\n", c->number,
		(unsigned long long)c->tickets, CONTEXT_RUNTIME_MAX, c->runtime,
		c->executes ? EXECUTES : ' ');
	if (pwrite(c->fd, line, LINE, 0) != LINE)
		return err_sys(err, errno, "write the file of a context");
	return 0;
}

static int guard(struct context_file *c, struct cloche_err *err)
{
	int r = lock(c, F_WRLCK, 0, 1, F_OFD_SETLKW);

	return r < 0 ? err_sys(err, -r, "lock the file of a context") : read_line(c, err);
}

static void unguard(struct context_file *c)
{
	(void)lock(c, F_UNLCK, 0, 1, F_OFD_SETLK);
}

int context_queue(struct context_file *c, struct cloche_err *err)
{
	int r = guard(c, err);

	if (r == 0) {
		c->ticket = ++c->tickets;
		r = lock(c, F_WRLCK, (off_t)c->ticket, 1, F_OFD_SETLK);
		r = r < 0 ? err_sys(err, -r, "lock the file of a context") : write_line(c, err);
	}
	unguard(c);
	return r;
}

int context_wait_first(struct context_file *c, int also_fd, struct cloche_err *err)
{
	const struct flock before = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = 1,
		.l_len = (off_t)c->ticket - 1};
	int r = c->ticket > 1 ? job_lock_bytes(c->fd, &before, -1, also_fd) : 0;

	if (r != 0)
		return r < 0 ? err_sys(err, -r, "lock the file of a context") : 0;
	r = guard(c, err);
	unguard(c);
	return r < 0 ? r : 1;
}

bool context_is_busy(const struct context_file *c)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1};

	return fcntl(c->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int context_set(struct context_file *c, uint32_t only_from, uint32_t number, const char *runtime,
	struct cloche_err *err)
{
	int r = guard(c, err);

	if (r == 0 && c->number == only_from) {
		c->number = number;
		if (runtime)
			snprintf(c->runtime, sizeof(c->runtime), "%s", runtime);
		r = write_line(c, err);
	}
	unguard(c);
	return r;
}

int context_set_executes(struct context_file *c, bool executes, struct cloche_err *err)
{
	int r = guard(c, err);

	if (r == 0) {
		c->executes = executes;
		r = write_line(c, err);
	}
	unguard(c);
	return r;
}

/* --- finding them --- */

/* Open the directory of all contexts. *ret_fd is -1 if there is none. */
static int open_all(const cloche_instance *instance, bool make, int *ret_fd, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	int r = instance_open_entry(instance, &entry, err);

	if (r < 0)
		return r;
	if (make && mkdirat(entry.dir, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the directory of contexts");
	*ret_fd = openat(entry.dir, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 && errno != ENOENT
		       ? err_sys(err, errno, "open the directory of contexts")
		       : 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(int dir, char ***ret, size_t *ret_n, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	struct dirent *e;
	size_t n = 0;
	int r = 0;

	if (!list)
		return err_sys(err, errno, "list the contexts");
	while (r == 0 && (e = fs_list_next(list)))
		if (context_check_name(e->d_name, NULL) == 0) {
			r = strv_add(&names, str_from(e->d_name));
			n++;
		}
	if (r < 0)
		return err_nomem(err);
	if (n > 0)
		qsort(names, n, sizeof(*names), compare_names);
	*ret = TAKE_PTR(names);
	*ret_n = n;
	return 0;
}

static int open_in(int dir, const char *name, struct context_file *ret, struct cloche_err *err)
{
	ret->fd = fd_lift(openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
	if (ret->fd < 0)
		return err_sys(err, errno, "open the file of a context");
	return read_line(ret, err);
}

static int make_in(int dir, const char *name, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_fd_ int fd = -1;
	size_t n;
	int r = list_names(dir, &names, &n, err);

	if (r < 0)
		return r;
	if (n >= MAX_CONTEXTS)
		return err_set(err, E_LIMIT, "the sandbox has %d contexts, and takes no more",
			MAX_CONTEXTS);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(err, errno, "make the file of a context") : 0;
}

int context_open(const cloche_instance *instance, const char *name, bool make,
	struct context_file *ret, struct cloche_err *err)
{
	_cleanup_fd_ int dir = -1;
	int r = context_check_name(name, err);

	if (r < 0)
		return r;
	r = open_all(instance, make, &dir, err);
	if (r < 0)
		return r;
	if (dir < 0 || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = make ? make_in(dir, name, err)
			 : err_set(err, E_NOT_FOUND, "sandbox %s has no context %s", instance->id,
				   name);
	return r < 0 ? r : open_in(dir, name, ret, err);
}

int context_look(const cloche_instance *instance, const struct context_file *c, bool *ret_runs,
	struct cloche_context_use *use, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	_cleanup_json_ json_t *meta = NULL;
	_cleanup_fd_ int dir = -1;
	int r = instance_open_entry(instance, &entry, err);

	if (r < 0)
		return r;
	dir = execs_open(entry.dir, c->number, NULL);
	meta = dir >= 0 ? execs_meta(dir) : NULL;
	*ret_runs =
		entry.life == SANDBOX_LIVE && str_eq(json_str_at(meta, "state"), STR("running"));
	if (*ret_runs)
		return 0;
	use->lost_signal = (int)json_count_at(meta, "signal");
	if (!use->lost_signal)
		use->lost_exit_code = (int)json_count_at(meta, "exit_code");
	return 0;
}

JOB_ASK1(call_context_fn, cloche_context_fn, bool, false, const cloche_context *)

static int tell(const cloche_instance *instance, int dir, const char *name, cloche_context_fn fn,
	void *user, bool *ret_more, struct cloche_err *err)
{
	struct context_file file = CONTEXT_FILE_INIT;
	struct cloche_context_use use = {0};
	bool runs = false;
	int r = open_in(dir, name, &file, err);

	if (r == 0 && file.number)
		r = context_look(instance, &file, &runs, &use, err);
	if (r == 0) {
		const struct cloche_context c = {.name = name,
			.runtime = file.runtime,
			.state = !runs                    ? CLOCHE_CONTEXT_ENDED
				 : context_is_busy(&file) ? CLOCHE_CONTEXT_BUSY
							  : CLOCHE_CONTEXT_IDLE,
			.number = file.number};

		*ret_more = call_context_fn(fn, &c, user);
	}
	context_done(&file);
	return r;
}

int cloche_instance_contexts(
	const cloche_instance *instance, cloche_context_fn fn, void *user, cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_fd_ int dir = -1;
	bool more = true;
	size_t n = 0;
	int r = open_all(instance, false, &dir, err);

	if (r == 0 && dir >= 0)
		r = list_names(dir, &names, &n, err);
	for (size_t i = 0; r == 0 && more && i < n; i++)
		r = tell(instance, dir, names[i], fn, user, &more, err);
	return r;
}
