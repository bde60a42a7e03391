/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with doubles that lie: whatever the other end says, the session ends in good order, for
 * good, and takes neither time nor memory without end. */
#include "base/clock.h"
#include "base/fd.h"
#include "fileclient/session.h"
#include "fs/fs.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
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

static bool count_names(const char *name, const cloche_file_stat *st, void *user)
{
	unsigned *n = user;

	check(strlen(name) > 0);
	++*n;
	return true;
}

/* Data without end. */
static long source(void *user, void *data, size_t size)
{
	memset(data, 'x', size);
	return (long)size;
}

struct lie {
	int fd;
	void (*tell)(struct chan *c);
	bool wait; /* for a request first */
};

static void *liar(void *user)
{
	struct lie *l = user;
	struct chan c;
	struct chan_frame frame;

	must(chan_init(&c, l->fd, FILES_MAX_PAYLOAD, FILES_MAX_OUT) == 0);
	if (l->wait && chan_recv_wait(&c, &frame, 30000) == 1)
		chan_frame_done(&frame);
	l->tell(&c);
	(void)!chan_flush_wait(&c, 2000);
	chan_done(&c);
	return NULL;
}

static void say_ready(struct chan *c)
{
	must(files_send_ready(c, &(struct files_ready){.version = FILES_VERSION}) == 0);
}

static void lie_nothing(struct chan *c)
{
	say_ready(c);
}

static void lie_early(struct chan *c)
{
	must(files_send_moved(c, &(struct files_moved){0}) == 0);
}

static void lie_version(struct chan *c)
{
	must(chan_send(c, FILES_READY, str_make("\x63\0\0", 4), NULL, 0) == 0);
}

static void lie_twice_ready(struct chan *c)
{
	say_ready(c);
	say_ready(c);
}

static void lie_garbage(struct chan *c)
{
	say_ready(c);
	must(buf_add_str(&c->out, STR("garbage garbage garbage garbage")) == 0);
}

static void lie_huge(struct chan *c)
{
	say_ready(c);
	must(buf_add_str(&c->out, str_make("\xff\xff\xff\x7f\x10\0\0\0", 8)) == 0);
}

static void lie_unknown(struct chan *c)
{
	say_ready(c);
	must(chan_send(c, 999, STR("x"), NULL, 0) == 0);
}

static void lie_descriptor(struct chan *c)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	say_ready(c);
	must(chan_send(c, FILES_STAT_IS, STR("x"), &fd, 1) == 0);
	close(fd);
}

static void lie_error(struct chan *c)
{
	struct frame_out f;

	say_ready(c);
	f = frame_begin(c, FILES_ERROR);
	wire_put_u32(&f.w, 0);
	wire_put_str(&f.w, STR(""));
	wire_put_str(&f.w, STR("nothing"));
	must(frame_end(&f, NULL, 0) == 0);
}

static void lie_data(struct chan *c)
{
	static char data[2 * FILES_CHUNK];

	say_ready(c);
	must(chan_send(c, FILES_DATA, str_make(data, sizeof(data)), NULL, 0) == 0);
}

static void lie_empty_data(struct chan *c)
{
	say_ready(c);
	must(chan_send(c, FILES_DATA, STR_NULL, NULL, 0) == 0);
}

static void lie_names(struct chan *c)
{
	struct frame_out f;

	say_ready(c);
	f = frame_begin(c, FILES_ENTRIES);
	wire_put_str(&f.w, STR("../x"));
	message_put(&f.w, files_stat_message(), &(struct files_stat){.mode = S_IFREG | 0644});
	must(frame_end(&f, NULL, 0) == 0);
}

static void lie_done_only(struct chan *c)
{
	say_ready(c);
	must(files_send_moved(c, &(struct files_moved){0}) == 0);
}

/* As the one that puts operations on record, which locks the log from ready() to end(). */
struct locking {
	struct files_observer base;
	bool begun, locked;
};

static int lock_begin(struct files_observer *r, const struct files_request *q, struct cloche_err *e)
{
	container_of(r, struct locking, base)->begun = q->op == FILES_OP_WRITE;
	return 0;
}

static int lock_data(struct files_observer *r, struct str data, struct cloche_err *e)
{
	return 0;
}

static int lock_ready(struct files_observer *r, struct cloche_err *e)
{
	container_of(r, struct locking, base)->locked = true;
	return 0;
}

static int lock_end(struct files_observer *r, bool done, struct cloche_err *e)
{
	struct locking *l = container_of(r, struct locking, base);

	l->begun = l->locked = false;
	return 0;
}

static void lock_free(struct files_observer *r)
{
}

static long short_source(void *user, void *data, size_t size)
{
	bool *told = user;

	data = memset(data, 'x', *told ? 0 : 10);
	if (*told)
		return 0;
	*told = true;
	return 10;
}

/* What the client thinks of it, with an operation of each kind. */
static int meet(void (*tell)(struct chan *c), bool wait, int op)
{
	struct lie l = {.tell = tell, .wait = wait};
	cloche_files *f = start_session(&l.fd);
	cloche_file_stat st;
	struct locking lock = {
		.base = {lock_begin, lock_data, lock_ready, NULL, lock_end, lock_free}};
	unsigned n = 0;
	bool told = false;
	char *target, to[80];
	void *data;
	size_t length;
	pthread_t thread;
	int r = 0, again;

	snprintf(to, sizeof(to), "%s/lied-to", top);
	cloche_files_set_timeout(f, 500);
	files_set_observer(f, &lock.base);
	must(pthread_create(&thread, NULL, liar, &l) == 0);
	switch (op) {
	case 0:
		r = cloche_files_stat(f, "x", true, &st, &err);
		break;
	case 1:
		r = cloche_files_list(f, "x", count_names, &n, &err);
		break;
	case 2:
		r = cloche_files_read_data(f, "x", 1000, &data, &length, &err);
		break;
	case 3:
		r = cloche_files_write(f, "x", 0, 0600, cloche_from_fn(source, NULL), &err);
		break;
	case 4:
		r = cloche_files_readlink(f, "x", &target, &err);
		break;
	case 5:
		r = cloche_files_write(f, "x", 0, 0600, cloche_from_fn(short_source, &told), &err);
		break;
	default:
		r = cloche_files_download(f, "x", to, NULL, &err);
		break;
	}
	check(!lock.locked && !lock.begun);
	/* Once broken, always broken, and for the same reason. */
	again = cloche_files_stat(f, "y", true, &st, &err);
	if (again != r)
		tap_fail("operation %d: first %d, then %d", op, r, again);
	cloche_files_close(f);
	pthread_join(thread, NULL);
	return r;
}

static void lies_end_the_session(void)
{
	static const struct {
		const char *what;
		void (*tell)(struct chan *c);
	} table[] = {{"dies", lie_nothing}, {"early", lie_early}, {"version", lie_version},
		{"twice ready", lie_twice_ready}, {"garbage", lie_garbage}, {"huge", lie_huge},
		{"unknown", lie_unknown}, {"descriptor", lie_descriptor}, {"error", lie_error},
		{"data", lie_data}, {"empty data", lie_empty_data}, {"names", lie_names}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		for (int op = 0; op < 7; op++) {
			int r = meet(table[i].tell, true, op);

			if (r != -E_PROTOCOL && r != -E_BROKEN && r != -E_UNSUPPORTED)
				tap_fail("%s, operation %d: %d (%s)", table[i].what, op, r,
					err.message);
			check(faccessat(AT_FDCWD, top, F_OK, 0) == 0);
		}
	}
	/* An answer that lacks what was asked for is none. */
	check_int(meet(lie_done_only, true, 0), -E_PROTOCOL);
	check_int(meet(lie_done_only, true, 4), -E_PROTOCOL);
	check_int(meet(lie_done_only, true, 3), -E_PROTOCOL);
}

static void lie_ninth(struct chan *c)
{
	struct files_error e = {0};

	say_ready(c);
	(void)files_fail(&e, EIO, STR("9"), NULL);
	must(files_send_error(c, &e) == 0);
}

/* The file of a batch that failed is one of the batch. */
static void the_ninth_of_two_fails(void)
{
	static const struct files_small files[] = {
		{FILES_KEEP_MODE, STR("a"), STR("1")}, {FILES_KEEP_MODE, STR("b"), STR("2")}};
	struct lie l = {.tell = lie_ninth, .wait = true};
	struct files_batch batch = {.files = files, .n = ARRAY_SIZE(files)};
	struct files_run run = {.f = start_session(&l.fd), .path = "files", .batch = &batch};
	pthread_t thread;

	must(pthread_create(&thread, NULL, liar, &l) == 0);
	run.verb = "write";
	check_int(files_batch_begin(&run, &err), 0);
	check_int(files_finish(&run, &err), -E_PROTOCOL);
	check_int((long long)batch.written, 0);
	cloche_files_close(run.f);
	pthread_join(thread, NULL);
}

/* Silence is an end too. */
static void silence_is_an_error(void)
{
	int other;
	cloche_files *f = start_session(&other);
	cloche_file_stat st;
	uint64_t began = clock_mono_usec();

	cloche_files_set_timeout(f, 100);
	check_int(cloche_files_stat(f, "x", true, &st, &err), -E_BROKEN);
	cloche_files_close(f);
	close(other);
	f = start_session(&other);
	cloche_files_set_timeout(f, 100);
	check_int(
		cloche_files_write(f, "x", 0, 0600, cloche_from_fn(source, NULL), &err), -E_BROKEN);
	check(clock_mono_usec() - began < 5 * USEC_PER_SEC);
	cloche_files_close(f);
	close(other);
}

static long resident(void)
{
	struct rusage u;

	must(getrusage(RUSAGE_SELF, &u) == 0);
	return u.ru_maxrss;
}

static void lie_endless(struct chan *c)
{
	const struct files_entry entry = {
		.name = STR("an-entry-with-a-name-that-is-not-short"), .stat.mode = S_IFREG};
	struct frame_out f;
	int r = 0;

	say_ready(c);
	for (int i = 0; i < 3000 && r == 0; i++) {
		f = frame_begin(c, FILES_ENTRIES);
		for (int k = 0; k < 500; k++) {
			message_put(&f.w, files_entry_message(), &entry);
		}
		must(frame_end(&f, NULL, 0) == 0);
		r = chan_flush_wait(c, 2000);
	}
	(void)!files_send_moved(c, &(struct files_moved){0});
}

/* 150 MB of entries leave no trace in our memory. */
static void endless_answers_take_no_memory(void)
{
	struct lie l = {.tell = lie_endless, .wait = true};
	cloche_files *f = start_session(&l.fd);
	unsigned n = 100000;
	long before = resident();
	pthread_t thread;

	must(pthread_create(&thread, NULL, liar, &l) == 0);
	check_int(cloche_files_list(f, "x", count_names, &n, &err), 0);
	check_int(n, 100000 + 1500000);
#ifdef __SANITIZE_ADDRESS__
	(void)before; /* it keeps what was freed */
#else
	check(resident() - before < 8192);
#endif
	cloche_files_close(f);
	pthread_join(thread, NULL);
}

/* Answers and signs of life without end. */
static void lie_on(struct chan *c)
{
	const struct files_entry entry = {.name = STR("x"), .stat.mode = S_IFREG};
	struct frame_out f;

	say_ready(c);
	do {
		f = frame_begin(c, FILES_ENTRIES);
		message_put(&f.w, files_entry_message(), &entry);
		must(frame_end(&f, NULL, 0) == 0);
		must(files_send_empty(c, FILES_ALIVE) == 0);
		usleep(1000);
	} while (chan_flush_wait(c, 30000) == 0);
}

static void lie_alive(struct chan *c)
{
	say_ready(c);
	do {
		must(files_send_empty(c, FILES_ALIVE) == 0);
		usleep(1000);
	} while (chan_flush_wait(c, 30000) == 0);
}

static bool take_one(const char *name, const cloche_file_stat *st, void *user)
{
	return false;
}

/* What is cancelled ends, even if the worker goes on. */
static void nothing_goes_on_when_it_is_given_up(void)
{
	struct lie l[2] = {{.tell = lie_on, .wait = true}, {.tell = lie_alive, .wait = true}};
	cloche_file_stat st;
	pthread_t thread[2];
	cloche_files *f;

	f = start_session(&l[0].fd);
	must(pthread_create(&thread[0], NULL, liar, &l[0]) == 0);
	check_int(cloche_files_list(f, "x", take_one, NULL, &err), 0);
	check_int(cloche_files_stat(f, "y", true, &st, &err), -E_BROKEN);
	cloche_files_close(f);
	f = start_session(&l[1].fd);
	must(pthread_create(&thread[1], NULL, liar, &l[1]) == 0);
	cloche_files_cancel(f);
	check_int(cloche_files_stat(f, "x", true, &st, &err), -E_BROKEN);
	cloche_files_close(f);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	tap_fast_dir(top);
	run_test(lies_end_the_session);
	run_test(the_ninth_of_two_fails);
	run_test(silence_is_an_error);
	run_test(endless_answers_take_no_memory);
	run_test(nothing_goes_on_when_it_is_given_up);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
