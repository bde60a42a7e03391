/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with a real worker over a directory of ours. */
#include "base/clock.h"
#include "base/fd.h"
#include "fileclient/session.h"
#include "fileworker/serve.h"
#include "fs/fs.h"
#include "tap.h"

#include <cloche/job.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int root;
static pid_t worker;
static bool one_process; /* whether the next worker is killed if it makes another process */
static struct cloche_err err;

static cloche_files *start_session(int *ret_other)
{
	cloche_files *f = NULL;
	int fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(files_session_new(fds[0], &f, &err) == 0);
	*ret_other = fds[1];
	return f;
}

static void forbid_processes(void)
{
	static const unsigned calls[] = {
		__NR_clone,
		__NR_clone3,
		__NR_execve,
		__NR_execveat,
#ifdef __NR_fork
		__NR_fork,
		__NR_vfork,
#endif
	};
	struct sock_filter code[2 * ARRAY_SIZE(calls) + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	/* An emulator of another processor has no filters. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		printf("# no filter: %s\n", strerror(errno));
	fflush(stdout);
}

static cloche_files *start_worker(void)
{
	int other;
	cloche_files *f = start_session(&other);

	fflush(stdout);
	worker = fork();
	must(worker >= 0);
	if (worker == 0) {
		/* The other ends are the parent's. */
		fd_close(f->c.fd);
		if (one_process)
			forbid_processes();
		_exit(files_serve(other, root, "/base", NULL, 0) < 0 ? 1 : 0);
	}
	close(other);
	return f;
}

static void end_worker(cloche_files *f)
{
	int status = -1;

	cloche_files_close(f);
	must(waitpid(worker, &status, 0) == worker);
	check_int(status, 0);
}

static void check_text(cloche_files *f, const char *path, const char *want)
{
	void *got = NULL;
	size_t n = 0;

	check_int(cloche_files_read_data(f, path, 1000, &got, &n, &err), 0);
	check_str(str_make(got, n), want);
	free(got);
}

static int write_text(cloche_files *f, const char *path, unsigned flags, const char *text)
{
	err_clear(&err);
	return cloche_files_write(
		f, path, flags, CLOCHE_FILES_KEEP_MODE, cloche_from_data(text, strlen(text)), &err);
}

static void contents_of_a_descriptor(void)
{
	cloche_files *f = start_worker();
	int ends[2];

	must(pipe(ends) == 0 && write(ends[1], "piped", 5) == 5);
	close(ends[1]);
	check_int(cloche_files_write(f, "fd", 0, 0600, cloche_from_fd(ends[0]), &err), 0);
	check_text(f, "fd", "piped");
	close(ends[0]);
	/* What cannot be read is an error, and leaves what was there. */
	check_int(cloche_files_write(f, "fd", 0, 0600, cloche_from_fd(ends[0]), &err), -E_SYSTEM);
	check_int(err.sys_errno, EBADF);
	check_text(f, "fd", "piped");
	end_worker(f);
}

#ifdef CLOCHE_HAS_JOBS
struct piped {
	cloche_files *f;
	int ends[2];
};

static int write_from_pipe(void *user, cloche_err *e)
{
	const struct piped *p = user;

	return cloche_files_write(p->f, "piped", 0, 0600, cloche_from_fd(p->ends[0]), e);
}

/* The descriptor does not block, so that a read that comes too early fails. */
static void a_job_waits_for_a_pipe(void)
{
	struct piped piped = {.f = start_worker()};
	const int *ends = piped.ends;
	struct pollfd p = {.events = POLLIN};
	cloche_job *job = NULL;
	int r = 1;

	must(pipe2(piped.ends, O_CLOEXEC) == 0 && fd_set_nonblock(ends[0], true) == 0);
	must(cloche_job_start(write_from_pipe, &piped, &job, &err) == 0);
	p.fd = cloche_job_fd(job);
	/* Until the job waits for what is not there yet. */
	while (r > 0 && poll(&p, 1, 300) == 1)
		r = cloche_job_dispatch(job, &err);
	check_int(r, 1);
	must(write(ends[1], "one ", 4) == 4);
	r = cloche_job_dispatch(job, &err);
	must(write(ends[1], "two", 3) == 3);
	close(ends[1]);
	while (r > 0 && poll(&p, 1, -1) == 1)
		r = cloche_job_dispatch(job, &err);
	check_int(r, 0);
	cloche_job_free(job);
	close(ends[0]);
	check_text(piped.f, "piped", "one two");
	end_worker(piped.f);
}
#endif

static void contents(void)
{
	cloche_files *f = start_worker();
	cloche_file_stat st;
	void *got;
	size_t n;

	check_int(write_text(f, "a", 0, "one"), 0);
	check_text(f, "/base/a", "one");
	check_int(write_text(f, "a", CLOCHE_FILES_APPEND, " two"), 0);
	check_text(f, "a", "one two");
	check_int(write_text(f, "a", CLOCHE_FILES_NEW, "x"), -E_EXISTS);
	check_int(write_text(f, "a", CLOCHE_FILES_IN_PLACE, "3"), 0);
	check_text(f, "a", "3");
	check_int(write_text(f, "p/q/r", 0, "x"), -E_NOT_FOUND);
	check_int(err.sys_errno, ENOENT);
	check_int(write_text(f, "p/q/r", CLOCHE_FILES_PARENTS, ""), 0);
	check_text(f, "p/q/r", "");
	check_int(write_text(f, "p/q", 0, "x"), -E_SYSTEM);
	check_int(err.sys_errno, EISDIR);
	check_int(write_text(f, "a/b", CLOCHE_FILES_PARENTS, "x"), -E_SYSTEM);
	check_int(err.sys_errno, ENOTDIR);
	check_int(cloche_files_read_data(f, "a", 0, &got, &n, &err), -E_LIMIT);
	check_int(cloche_files_read_data(f, "p", 10, &got, &n, &err), -E_SYSTEM);
	check_int(err.sys_errno, EISDIR);
	/* A replaced file keeps its mode, a link what it is. */
	check_int(cloche_files_chmod(f, "a", 0640, &err), 0);
	check_int(cloche_files_symlink(f, "a", "link", &err), 0);
	check_int(write_text(f, "link", 0, "through"), 0);
	check_text(f, "a", "through");
	check_int(cloche_files_stat(f, "a", false, &st, &err), 0);
	check_int(st.mode, 0640);
	check_int(st.size, 7);
	check_int(cloche_files_stat(f, "link", false, &st, &err), 0);
	check_int(st.type, CLOCHE_NODE_SYMLINK);
	check_int(cloche_files_write(f, "a", 0, 0400, cloche_from_data("y", 1), &err), 0);
	check_int(cloche_files_stat(f, "a", false, &st, &err), 0);
	check_int(st.mode, 0400);
	end_worker(f);
}

/* What fits into one piece goes out with its request, what is larger behind it. */
static int write_batch(
	cloche_files *f, const struct files_small *files, size_t n, size_t *ret_written)
{
	struct files_batch batch = {.files = files, .n = n};
	struct files_run run = {.f = f, .verb = "write", .path = "files", .batch = &batch};
	int r;

	err_clear(&err);
	r = files_batch_begin(&run, &err);
	if (r == 0)
		r = files_finish(&run, &err);
	*ret_written = batch.written;
	return r;
}

static void batches(void)
{
	static const struct files_small files[] = {{FILES_KEEP_MODE, STR("m/n/a"), STR("1")},
		{0600, STR("m/n/b"), STR("2")}, {FILES_KEEP_MODE, STR("m/n/b"), STR("3")},
		{0640, STR("m/n/to-b"), STR("4")}, {FILES_KEEP_MODE, STR("m/n/new"), STR("5")},
		{FILES_KEEP_MODE, STR("m/n/../.dot"), STR("")},
		{FILES_KEEP_MODE, STR("m/far/a"), STR("6")}};
	static const struct files_small bad[] = {{FILES_KEEP_MODE, STR("m/before"), STR("1")},
		{FILES_KEEP_MODE, STR("m/n"), STR("2")},
		{FILES_KEEP_MODE, STR("m/after"), STR("3")}};
	cloche_files *f = start_worker();
	cloche_file_stat st;
	size_t written;

	check_int(cloche_files_mkdir(f, "m/n", CLOCHE_FILES_KEEP_MODE, true, &err), 0);
	check_int(cloche_files_mkdir(f, "else", CLOCHE_FILES_KEEP_MODE, true, &err), 0);
	check_int(cloche_files_symlink(f, "b", "m/n/to-b", &err), 0);
	check_int(cloche_files_symlink(f, "../gone/new", "m/n/new", &err), 0);
	check_int(cloche_files_symlink(f, "/base/else", "m/far", &err), 0);
	check_int(cloche_files_mkdir(f, "m/gone", CLOCHE_FILES_KEEP_MODE, true, &err), 0);
	check_int(write_batch(f, files, ARRAY_SIZE(files), &written), 0);
	check_text(f, "m/n/a", "1");
	check_text(f, "m/n/b", "4");
	check_text(f, "m/gone/new", "5");
	check_text(f, "m/.dot", "");
	check_text(f, "else/a", "6");
	check_int(cloche_files_stat(f, "m/n/b", false, &st, &err), 0);
	check_int(st.mode & 07777, 0640);
	check_int(cloche_files_stat(f, "m/n/to-b", false, &st, &err), 0);
	check_int(st.type, CLOCHE_NODE_SYMLINK);
	check_int(write_batch(f, bad, ARRAY_SIZE(bad), &written), -E_SYSTEM);
	check_int(err.sys_errno, EISDIR);
	check(strstr(err.message, "m/n"));
	check_int((long long)written, 1);
	check_text(f, "m/before", "1");
	check_int(cloche_files_stat(f, "m/after", false, &st, &err), -E_NOT_FOUND);
	end_worker(f);
}

/* A file that is new is never seen without its contents. */
static void batches_are_not_seen_half(void)
{
	static const struct files_small files[] = {{FILES_KEEP_MODE, STR("half/a"), STR("1")},
		{0600, STR("half/b"), STR("2")}, {FILES_KEEP_MODE, STR("half/a"), STR("3")}};
	_Alignas(struct inotify_event) char events[4096];
	_cleanup_fd_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	cloche_files *f = start_worker();
	char path[TAP_DIR_BYTES + 16];
	size_t written;
	ssize_t n;

	check_int(cloche_files_mkdir(f, "half", CLOCHE_FILES_KEEP_MODE, true, &err), 0);
	snprintf(path, sizeof(path), "%s/base/half", top);
	must(inotify_add_watch(watch, path, IN_MODIFY | IN_ATTRIB) >= 0);
	check_int(write_batch(f, files, ARRAY_SIZE(files), &written), 0);
	n = read(watch, events, sizeof(events));
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(events + at);

		/* Other names are those of files that are not whole yet. */
		check(e->len == 0 || (strcmp(e->name, "a") != 0 && strcmp(e->name, "b") != 0));
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	check_text(f, "half/a", "3");
	end_worker(f);
}

/* The largest that a batch takes, twice, as far as one piece of data has room. */
static void batches_of_large_files(void)
{
	static char data[FILES_MAX_SMALL];
	struct files_small files[] = {
		{FILES_KEEP_MODE, STR("large/a"), str_make(data, sizeof(data))},
		{FILES_KEEP_MODE, STR("large/b"),
			str_make(data, FILES_CHUNK - sizeof(data) - 100)}};
	cloche_files *f = start_worker();
	cloche_file_stat st;
	size_t written;

	memset(data, 'x', sizeof(data));
	check_int(write_batch(f, files, ARRAY_SIZE(files), &written), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		check_int(cloche_files_stat(f, files[i].path.p, false, &st, &err), 0);
		check_int((long long)st.size, (long long)files[i].data.n);
	}
	end_worker(f);
}

/* Puts on record what a batch has written, as the one of a recorded sandbox does. */
struct noting {
	struct files_observer base;
	bool locked, full;
	size_t ended;
	struct buf paths;
};

static int note_begin(struct files_observer *r, const struct files_request *q, struct cloche_err *e)
{
	return 0;
}

static int note_ready(struct files_observer *r, struct cloche_err *e)
{
	container_of(r, struct noting, base)->locked = true;
	return 0;
}

static int note_wrote(
	struct files_observer *r, const struct files_small *files, size_t n, struct cloche_err *e)
{
	struct noting *note = container_of(r, struct noting, base);

	check(note->locked);
	for (size_t i = 0; i < n; i++)
		must(buf_add_str(&note->paths, files[i].path) == 0);
	return note->full ? err_set(e, E_NO_SPACE, "the disk is full") : 0;
}

static int note_end(struct files_observer *r, bool done, struct cloche_err *e)
{
	struct noting *note = container_of(r, struct noting, base);

	note->ended++;
	note->locked = false;
	return 0;
}

static void note_free(struct files_observer *r)
{
}

/* What was written before one that fails is on record, and nothing behind it. That all were
 * written, but are not on record, is an error. */
static void batches_on_record(void)
{
	static const struct files_small files[] = {{FILES_KEEP_MODE, STR("r/a"), STR("1")},
		{FILES_KEEP_MODE, STR("r/b"), STR("2")}, {FILES_KEEP_MODE, STR("r"), STR("3")},
		{FILES_KEEP_MODE, STR("r/c"), STR("4")}};
	struct noting note = {
		.base = {note_begin, NULL, note_ready, note_wrote, note_end, note_free},
		.paths = BUF_INIT(64)};
	cloche_files *f = start_worker();
	size_t written;

	files_set_observer(f, &note.base);
	check_int(write_batch(f, files, ARRAY_SIZE(files), &written), -E_SYSTEM);
	check_int((long long)written, 2);
	check_str(buf_str(&note.paths), "r/ar/b");
	check_int(write_batch(f, files, 1, &written), 0);
	check_str(buf_str(&note.paths), "r/ar/br/a");
	note.full = true;
	check_int(write_batch(f, files, 2, &written), -E_NO_SPACE);
	check_int((long long)written, 2);
	check_int((long long)note.ended, 3);
	check(!note.locked);
	end_worker(f);
	buf_done(&note.paths);
}

static void sizes(void)
{
	static const size_t all[] = {
		0, 1, FILES_CHUNK - 1, FILES_CHUNK, FILES_CHUNK + 1, 3 * FILES_CHUNK + 5};
	static char data[3 * FILES_CHUNK + 5];
	cloche_files *f = start_worker();

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		void *got = NULL;
		size_t n = 0;

		check_int(cloche_files_write(f, "sized", 0, CLOCHE_FILES_KEEP_MODE,
				  cloche_from_data(data, all[i]), &err),
			0);
		check_int(cloche_files_read_data(f, "sized", sizeof(data), &got, &n, &err), 0);
		check(n == all[i] && memcmp(got, data, n) == 0);
		free(got);
	}
	end_worker(f);
}

static void fifos_do_not_block(void)
{
	cloche_files *f = start_worker();
	void *got;
	size_t n;

	must(mkfifoat(root, "base/fifo", 0644) == 0);
	check_int(cloche_files_read_data(f, "fifo", 10, &got, &n, &err), -E_SYSTEM);
	check_z(err.message, "read fifo: it is not a regular file");
	check_int(write_text(f, "fifo", 0, "x"), -E_SYSTEM);
	check_int(write_text(f, "fifo", CLOCHE_FILES_APPEND, "x"), -E_SYSTEM);
	check_int(cloche_files_remove(f, "fifo", false, &err), 0);
	end_worker(f);
}

struct big {
	uint64_t left, at;
};

static long source_big(void *user, void *data, size_t size)
{
	struct big *b = user;
	char *p = data;
	size_t n = b->left < size ? (size_t)b->left : size;

	for (size_t i = 0; i < n; i++)
		p[i] = (char)((b->at + i) * 2654435761U >> 13);
	b->left -= n;
	b->at += n;
	return (long)n;
}

static int sink_big(void *user, const void *data, size_t n)
{
	struct big *b = user;
	const char *p = data;

	for (size_t i = 0; i < n; i++)
		if (p[i] != (char)((b->at + i) * 2654435761U >> 13))
			b->left++;
	b->at += n;
	return 0;
}

static void large_files(void)
{
	cloche_files *f = start_worker();
	struct big in = {.left = 30000001}, out = {0};

	check_int(cloche_files_write(f, "big", 0, 0600, cloche_from_fn(source_big, &in), &err), 0);
	check_int(cloche_files_read(f, "big", 0, UINT64_MAX, sink_big, &out, &err), 0);
	check_int(out.at, 30000001);
	check_int(out.left, 0);
	out = (struct big){.at = 12345678};
	check_int(cloche_files_read(f, "big", 12345678, 1000000, sink_big, &out, &err), 0);
	check_int(out.at, 13345678);
	check_int(out.left, 0);
	check_int(cloche_files_remove(f, "big", false, &err), 0);
	end_worker(f);
}

static long source_fails(void *user, void *data, size_t size)
{
	int *calls = user;

	memset(data, 'x', size);
	return ++*calls > 5 ? -1 : (long)size;
}

static int sink_fails(void *user, const void *data, size_t n)
{
	return -1;
}

static long source_cancels(void *user, void *data, size_t size)
{
	memset(data, 'x', size);
	cloche_files_cancel(user);
	return (long)size;
}

/* Whoever gives up leaves nothing behind, and the session is as good as before. */
static void giving_up(void)
{
	cloche_files *f = start_worker();
	cloche_file_stat st;
	struct big in = {.left = 5000000};
	int calls = 0, left = 0;

	check_int(cloche_files_write(f, "n", 0, 0600, cloche_from_fn(source_fails, &calls), &err),
		-E_CANCELLED);
	check_int(cloche_files_stat(f, "n", false, &st, &err), -E_NOT_FOUND);
	check_int(cloche_files_write(f, "n", 0, 0600, cloche_from_fn(source_cancels, f), &err),
		-E_CANCELLED);
	check_int(cloche_files_stat(f, "n", false, &st, &err), -E_NOT_FOUND);
	check_int(cloche_files_write(f, "big", 0, 0600, cloche_from_fn(source_big, &in), &err), 0);
	check_int(cloche_files_read(f, "big", 0, UINT64_MAX, sink_fails, NULL, &err), -E_CANCELLED);
	check_int(cloche_files_stat(f, "big", false, &st, &err), 0);
	check_int(cloche_files_tar_get(f, "/", true, sink_fails, NULL, &err), -E_CANCELLED);
	check_int(cloche_files_stat(f, "big", false, &st, &err), 0);
	/* No directory to write into: the data is thrown away, however much. */
	in = (struct big){.left = 50000000};
	check_int(cloche_files_write(f, "no/n", 0, 0600, cloche_from_fn(source_big, &in), &err),
		-E_NOT_FOUND);
	check(in.left > 0);
	check_int(cloche_files_remove(f, "big", false, &err), 0);
	end_worker(f);
	must((left = openat(root, "base", O_RDONLY | O_DIRECTORY)) >= 0);
	check(faccessat(left, "n", F_OK, 0) < 0);
	close(left);
}

static bool count_names(const char *name, const cloche_file_stat *st, void *user)
{
	unsigned *n = user;

	check(strlen(name) > 0);
	return ++*n != 77777;
}

static void names(void)
{
	cloche_files *f = start_worker();
	cloche_file_stat st;
	unsigned n = 0;
	char *target = NULL;

	check_int(cloche_files_mkdir(f, "d/e/f", 0700, false, &err), -E_NOT_FOUND);
	check_int(cloche_files_mkdir(f, "d/e/f", 01777, true, &err), 0);
	check_int(cloche_files_stat(f, "d/e/f/", false, &st, &err), 0);
	check_int(st.mode, 01777);
	check_int(cloche_files_mkdir(f, "d/e/f", 0700, true, &err), 0);
	check_int(cloche_files_mkdir(f, "d/e/f", 0700, false, &err), -E_EXISTS);
	for (int i = 0; i < 3000; i++) {
		char path[64];

		snprintf(path, sizeof(path), "d/\xff\n %d", i);
		check_int(write_text(f, path, 0, ""), 0);
	}
	check_int(cloche_files_list(f, "d", count_names, &n, &err), 0);
	check_int(n, 3001);
	n = 77777 - 10;
	check_int(cloche_files_list(f, "d", count_names, &n, &err), 0);
	check_int(n, 77777);
	check_int(cloche_files_list(f, "a/", count_names, &n, &err), -E_SYSTEM);
	check_int(cloche_files_remove(f, "d", false, &err), -E_SYSTEM);
	check_int(err.sys_errno, ENOTEMPTY);
	check_int(cloche_files_symlink(f, "../../\xfe", "d/l", &err), 0);
	check_int(cloche_files_symlink(f, "x", "d/l", &err), -E_EXISTS);
	check_int(cloche_files_readlink(f, "d/l", &target, &err), 0);
	check_z(target, "../../\xfe");
	free(target);
	check_int(cloche_files_readlink(f, "d/e", &target, &err), -E_SYSTEM);
	check_int(cloche_files_rename(f, "d/l", "d/e", false, &err), -E_EXISTS);
	check_int(cloche_files_rename(f, "d/l", "d/m", false, &err), 0);
	check_int(cloche_files_rename(f, "d/m", "a", true, &err), 0);
	check_int(cloche_files_rename(f, "/", "a", true, &err), -E_SYSTEM);
	check_int(cloche_files_remove(f, "d", true, &err), 0);
	check_int(cloche_files_remove(f, "d", true, &err), -E_NOT_FOUND);
	check_int(cloche_files_list(f, "d", count_names, &n, &err), -E_NOT_FOUND);
	check_int(n, 77777);
	cloche_files_set_lenient(f, true);
	err_clear(&err);
	check_int(cloche_files_remove(f, "d", true, &err), 0);
	check_int(cloche_files_remove(f, "d/e", false, NULL), 0);
	check_int(cloche_files_list(f, "d", count_names, &n, &err), 0);
	check_int(n, 77777);
	check_int(err.code, 0);
	check_int(cloche_files_remove(f, "/", true, &err), -E_SYSTEM);
	check_int(cloche_files_stat(f, "d", true, &st, &err), -E_NOT_FOUND);
	cloche_files_set_lenient(f, false);
	check_int(cloche_files_remove(f, "d", true, &err), -E_NOT_FOUND);
	check_int(cloche_files_remove(f, "/", true, &err), -E_SYSTEM);
	check_int(cloche_files_stat(f, "", true, &st, &err), -E_USAGE);
	end_worker(f);
}

struct changes {
	cloche_files *f;
	struct buf text;
	const char *until;
};

static bool on_change(const cloche_files_event *event, void *user)
{
	struct changes *c = user;

	must(buf_printf(&c->text, "%s %s%s\n", event->change_name, event->path,
		     event->is_directory ? "/" : "") == 0);
	return str_find(buf_str(&c->text), str_from(c->until)) == buf_len(&c->text);
}

/* Somebody else's doing; a child, as a session is one operation at a time. */
static void on_ready(void *user)
{
	if (fork() > 0)
		return;
	(void)!mkdirat(root, "base/w/sub", 0755);
	usleep(100000);
	(void)!fs_write_atomic(root, "base/w/sub/f", STR("x"), 0644, false, NULL);
	(void)!renameat(root, "base/w/sub", root, "base/w/moved");
	usleep(100000);
	(void)!unlinkat(root, "base/w/moved/f", 0);
	(void)!unlinkat(root, "base/w/moved", AT_REMOVEDIR);
	usleep(100000);
	(void)!unlinkat(root, "base/w", AT_REMOVEDIR);
	_exit(0);
}

static void watching(void)
{
	static const char *const expected[] = {"created sub/\n", "written sub/f\n",
		"moved-to sub/f\n", "moved-from sub/\n", "moved-to moved/\n", "deleted moved/f\n",
		"deleted moved/\n", "gone \n"};
	cloche_files *f = start_worker();
	struct changes c = {.f = f, .text = BUF_INIT(100000), .until = "\1"};

	check_int(cloche_files_mkdir(f, "w", 0755, false, &err), 0);
	check_int(cloche_files_watch(f, "w", true, on_ready, on_change, &c, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (str_find(buf_str(&c.text), str_from(expected[i])) == buf_len(&c.text))
			tap_fail("no %s among\n%.*s", expected[i], STR_FMT(buf_str(&c.text)));
	wait(NULL);
	buf_clear(&c.text);
	check_int(cloche_files_watch(f, "w", true, on_ready, on_change, &c, &err), -E_NOT_FOUND);
	/* The callback may end it, and somebody else may. */
	check_int(cloche_files_mkdir(f, "w", 0755, false, &err), 0);
	c.until = "sub";
	check_int(cloche_files_watch(f, "w", false, on_ready, on_change, &c, &err), 0);
	wait(NULL);
	(void)cloche_files_mkdir(f, "w", 0755, true, &err);
	cloche_files_cancel(f);
	check_int(cloche_files_watch(f, "w", false, NULL, on_change, &c, &err), -E_CANCELLED);
	check_int(cloche_files_remove(f, "w", true, &err), 0);
	buf_done(&c.text);
	end_worker(f);
}

/* The worker is told of the renaming when something was made below the new name already. */
static void on_ready_rename(_unused_ void *user)
{
	if (fork() > 0)
		return;
	tap_stop(worker);
	(void)!renameat(root, "base/w/sub", root, "base/w/moved");
	fd_close(openat(root, "base/w/moved/below/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	kill(worker, SIGCONT);
	usleep(100000);
	(void)!fs_remove_tree(root, "base/w/moved");
	(void)!unlinkat(root, "base/w", AT_REMOVEDIR);
	_exit(0);
}

static void watching_what_is_renamed(void)
{
	static const char *const expected[] = {
		"moved-to moved/\n", "created moved/below/f\n", "deleted moved/\n", "gone \n"};
	cloche_files *f = start_worker();
	struct changes c = {.f = f, .text = BUF_INIT(100000), .until = "\1"};

	check_int(cloche_files_mkdir(f, "w/sub/below", 0755, true, &err), 0);
	check_int(cloche_files_watch(f, "w", true, on_ready_rename, on_change, &c, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (str_find(buf_str(&c.text), str_from(expected[i])) == buf_len(&c.text))
			tap_fail("no %s among\n%.*s", expected[i], STR_FMT(buf_str(&c.text)));
	wait(NULL);
	buf_done(&c.text);
	end_worker(f);
}

/* One of a few static buffers. */
static const char *in_dir(const char *dir, const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void trees(void)
{
	cloche_files *f = start_worker();
	cloche_files_moved moved;
	char from[80], to[80];
	struct stat st;

	snprintf(from, sizeof(from), "%s/host-from", top);
	snprintf(to, sizeof(to), "%s/host-to", top);
	must(mkdir(from, 0755) == 0);
	must(fs_write_atomic(AT_FDCWD, in_dir(from, "f"), STR("text"), 0604, false, NULL) == 0);
	check_int(cloche_files_upload(f, from, "t/u", &moved, &err), 0);
	check_int(moved.entries, 2);
	check_int(moved.bytes, 4);
	check_text(f, "t/u/f", "text");
	check_int(cloche_files_download(f, "t", to, &moved, &err), 0);
	check_int(moved.entries, 3);
	must(stat(in_dir(to, "u/f"), &st) == 0);
	check_int(st.st_mode & 07777, 0604);
	check_int(cloche_files_upload(f, in_dir(from, "f"), "t/alone", &moved, &err), 0);
	check_text(f, "t/alone", "text");
	check_int(cloche_files_download(f, "t/alone", in_dir(to, "one"), &moved, &err), 0);
	check_int(stat(in_dir(to, "one"), &st), 0);
	check_int(cloche_files_upload(f, "/nowhere/at/all", "t/x", NULL, &err), -E_NOT_FOUND);
	check_int(cloche_files_download(f, "t/nothing", to, NULL, &err), -E_NOT_FOUND);
	check_int(cloche_files_download(f, "t", "/nowhere/at/all", NULL, &err), -E_NOT_FOUND);
	check_int(cloche_files_upload(f, from, "t/alone/x", NULL, &err), -E_SYSTEM);
	check_int(cloche_files_stat(f, "t", true, &(cloche_file_stat){0}, &err), 0);
	end_worker(f);
}

static void killed_in_the_middle(void)
{
	cloche_files *f = start_worker();
	struct big in = {.left = UINT64_MAX};
	cloche_file_stat st;
	pid_t killer = fork();

	if (killer == 0) {
		usleep(100000);
		kill(worker, SIGKILL);
		_exit(0);
	}
	check_int(cloche_files_write(f, "never", 0, 0600, cloche_from_fn(source_big, &in), &err),
		-E_BROKEN);
	check_int(cloche_files_stat(f, "never", true, &st, &err), -E_BROKEN);
	cloche_files_close(f);
	waitpid(killer, NULL, 0);
	waitpid(worker, NULL, 0);
	check(faccessat(root, "base/never", F_OK, 0) < 0);
}

enum { SMALL_ONES = 2000 };

static void do_small(cloche_files *f, const char *what, int i)
{
	cloche_file_stat st;
	char path[32];

	if (strcmp(what, "stat") == 0)
		must(cloche_files_stat(f, "small", true, &st, &err) == 0);
	else if (strcmp(what, "read") == 0)
		check_text(f, "small", "x");
	else if (strcmp(what, "write, replacing") == 0)
		must(write_text(f, "small", 0, "x") == 0);
	snprintf(path, sizeof(path), "small-%d", i);
	if (strcmp(what, "write, new") == 0)
		must(write_text(f, path, 0, "x") == 0);
}

/* Not one process, and no more bytes than it takes. */
static void small_operations_are_cheap(void)
{
	static const struct {
		const char *what;
		size_t most; /* bytes to the worker: frames' headers, and what they hold */
	} kinds[] = {{"stat", 64}, {"read", 64}, {"write, replacing", 128}, {"write, new", 128}};
	cloche_files *f;

	one_process = true;
	f = start_worker();
	one_process = false;
	check_int(write_text(f, "small", 0, "x"), 0);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		uint64_t began = clock_mono_usec(), sent = f->c.sent;

		for (int i = 0; i < SMALL_ONES; i++)
			do_small(f, kinds[k].what, i);
		sent = (f->c.sent - sent) / SMALL_ONES;
		printf("# %s: %llu bytes, %.1f us\n", kinds[k].what, (unsigned long long)sent,
			(double)(clock_mono_usec() - began) / SMALL_ONES);
		check(sent > CHAN_HEADER && sent <= kinds[k].most);
	}
	end_worker(f);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	tap_fast_dir(top);
	root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(root >= 0 && mkdirat(root, "base", 0755) == 0);
	run_test(contents);
	run_test(contents_of_a_descriptor);
#ifdef CLOCHE_HAS_JOBS
	run_test(a_job_waits_for_a_pipe);
#endif
	run_test(batches);
	run_test(batches_are_not_seen_half);
	run_test(batches_of_large_files);
	run_test(batches_on_record);
	run_test(sizes);
	run_test(fifos_do_not_block);
	run_test(large_files);
	run_test(giving_up);
	run_test(names);
	run_test(watching);
	run_test(watching_what_is_renamed);
	run_test(trees);
	run_test(killed_in_the_middle);
	run_test(small_operations_are_cheap);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
