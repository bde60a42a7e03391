/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that lie. Whatever they say, a pull ends, nothing half-written is left, and what the
 * person has is as it was. */
#include "base/fd.h"
#include "files/tar.h"
#include "fs/fs.h"
#include "sync/sync.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static struct cloche_err err;
static unsigned told[SYNC_EVENT_END_];
static struct stat mine; /* the file that both have */

struct liar {
	int fd;
	/* Answer a request. Return whether to go on. */
	bool (*answer)(struct chan *c, const struct files_request *q);
};

static void *lie(void *user)
{
	const struct liar *l = user;
	struct chan_frame frame;
	struct files_request q;
	struct chan c;
	bool on = true;

	must(chan_init(&c, l->fd, FILES_MAX_PAYLOAD, FILES_MAX_OUT) == 0);
	(void)!files_send_ready(&c, &(struct files_ready){.version = FILES_VERSION});
	while (on && chan_flush_wait(&c, 5000) == 0 && chan_recv_wait(&c, &frame, 10000) == 1) {
		if (frame.type == FILES_REQUEST && files_get_request(frame.payload, &q))
			on = l->answer(&c, &q);
		else if (frame.type == FILES_CANCEL)
			(void)!files_send_moved(&c, &(struct files_moved){0});
		chan_frame_done(&frame);
	}
	(void)!chan_flush_wait(&c, 1000);
	chan_done(&c);
	return NULL;
}

static void tell(void *user, enum sync_event event, const char *path, const char *other)
{
	told[event]++;
}

/* Pull from it into a directory with a file "mine" that both have. Return the result, and how many
 * names are there afterwards. */
static int meet(bool (*answer)(struct chan *c, const struct files_request *q), unsigned *ret_names)
{
	_cleanup_(sync_state_donep) struct sync_state s = {.phase = SYNC_WHOLE};
	const struct sync_options o = {.id = "x", .max_entries = 1000, .max_bytes = 1 << 20};
	struct sync_report report = {.tell = tell};
	struct liar l = {.answer = answer};
	struct sync_node *n;
	cloche_files *f = NULL;
	pthread_t thread;
	int fds[2], dir, fd, r;
	DIR *list;

	memset(told, 0, sizeof(told));
	err_clear(&err);
	(void)fs_remove_tree(AT_FDCWD, top);
	must(mkdir(top, 0700) == 0);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "mine", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(dir >= 0 && fd >= 0 && write(fd, "mine", 4) == 4 && fstat(fd, &mine) == 0);
	close(fd);
	must((n = sync_state_add(&s, STR("mine"))) != NULL);
	n->before = (struct sync_before){.type = SYNC_FILE,
		.mode = 0644,
		.size = 4,
		.here = {mine.st_mtim.tv_sec, (uint32_t)mine.st_mtim.tv_nsec}};
	n->before.there = n->before.here;
	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(files_session_new(fds[0], &f, &err) == 0);
	cloche_files_set_timeout(f, 2000);
	l.fd = fds[1];
	must(pthread_create(&thread, NULL, lie, &l) == 0);
	r = sync_pull(f, dir, &o, &s, &report, &err);
	cloche_files_close(f);
	pthread_join(thread, NULL);
	*ret_names = 0;
	list = fs_list(dir, ".");
	while (list && fs_list_next(list))
		++*ret_names;
	fs_list_closep(&list);
	close(dir);
	return r;
}

/* --- what they say --- */

static void put_entry(struct frame_out *f, const char *name, mode_t mode, uint64_t size)
{
	const struct files_entry e = {
		.name = str_from(name), .stat = {.mode = mode, .size = size, .mtime_sec = 1}};

	message_put(&f->w, files_entry_message(), &e);
}

static void put_mine(struct frame_out *f)
{
	struct files_entry e = {.name = STR("mine")};

	files_stat_from(&e.stat, &mine);
	message_put(&f->w, files_entry_message(), &e);
}

static void say_entry(struct chan *c, const char *name, mode_t mode, uint64_t size)
{
	struct frame_out f = frame_begin(c, FILES_ENTRIES);

	put_mine(&f);
	put_entry(&f, name, mode, size);
	(void)!frame_end(&f, NULL, 0);
	(void)!files_send_moved(c, &(struct files_moved){0});
}

static void say_error(struct chan *c, int errnum)
{
	struct files_error e = {0};

	(void)files_fail(&e, errnum, STR_NULL, NULL);
	(void)!files_send_error(c, &e);
}

/* Each directory has a directory of the same name in it. */
static bool answer_loop(struct chan *c, const struct files_request *q)
{
	struct frame_out f = frame_begin(c, FILES_ENTRIES);

	put_entry(&f, "again", S_IFDIR | 0755, 0);
	if (q->path.n == 1)
		put_mine(&f);
	return frame_end(&f, NULL, 0) == 0 && files_send_moved(c, &(struct files_moved){0}) == 0;
}

static bool answer_many(struct chan *c, const struct files_request *q)
{
	for (int i = 0; i < 100; i++) {
		struct frame_out f = frame_begin(c, FILES_ENTRIES);

		for (int k = 0; k < 100; k++) {
			char name[32];

			snprintf(name, sizeof(name), "f%d-%d", i, k);
			put_entry(&f, name, S_IFREG | 0644, 1);
		}
		if (frame_end(&f, NULL, 0) < 0 || chan_flush_wait(c, 5000) < 0)
			return false;
	}
	return files_send_moved(c, &(struct files_moved){0}) == 0;
}

static bool answer_twice(struct chan *c, const struct files_request *q)
{
	say_entry(c, "mine", S_IFREG | 0644, 4);
	return true;
}

static bool answer_huge(struct chan *c, const struct files_request *q)
{
	say_entry(c, "huge", S_IFREG | 0644, UINT64_MAX);
	return true;
}

/* The file has another size than the list says, in either direction, and is said to have it. */
static bool answer_shorter(struct chan *c, const struct files_request *q)
{
	if (q->op == FILES_OP_LIST) {
		say_entry(c, "a", S_IFREG | 0644, 10);
	} else if (q->op == FILES_OP_STAT) {
		(void)!files_send_stat(c,
			&(struct files_stat){.mode = S_IFREG | 0644, .size = 10, .mtime_sec = 1});
		(void)!files_send_moved(c, &(struct files_moved){0});
	} else {
		(void)!chan_send(c, FILES_DATA, STR("short"), NULL, 0);
		(void)!files_send_moved(c, &(struct files_moved){0});
	}
	return true;
}

static bool answer_longer(struct chan *c, const struct files_request *q)
{
	if (q->op == FILES_OP_LIST)
		say_entry(c, "a", S_IFREG | 0644, 10);
	else
		(void)!chan_send(c, FILES_DATA, STR("longer than it was said"), NULL, 0);
	return true;
}

/* More than the limit allows, as it was said. */
static bool answer_large(struct chan *c, const struct files_request *q)
{
	static char data[FILES_CHUNK];

	if (q->op == FILES_OP_LIST) {
		say_entry(c, "a", S_IFREG | 0644, 1 << 30);
		return true;
	}
	for (int i = 0; i < 20; i++)
		if (chan_send(c, FILES_DATA, str_make(data, sizeof(data)), NULL, 0) < 0 ||
			chan_flush_wait(c, 5000) < 0)
			return false;
	return files_send_moved(c, &(struct files_moved){0}) == 0;
}

static bool answer_dies(struct chan *c, const struct files_request *q)
{
	if (q->op == FILES_OP_LIST) {
		say_entry(c, "a", S_IFREG | 0644, 10);
		return true;
	}
	(void)!chan_send(c, FILES_DATA, STR("half"), NULL, 0);
	return false;
}

/* A name that is a directory when it is listed, and then is not. */
static bool answer_vanishes(struct chan *c, const struct files_request *q)
{
	if (q->op == FILES_OP_LIST && q->path.n == 1)
		say_entry(c, "dir", S_IFDIR | 0755, 0);
	else
		say_error(c, ENOTDIR);
	return true;
}

static bool answer_link(struct chan *c, const struct files_request *q)
{
	if (q->op == FILES_OP_LIST)
		say_entry(c, "link", S_IFLNK | 0777, 5);
	else if (files_send_target(c, &(struct files_target){.target = STR("")}) == 0)
		(void)!files_send_moved(c, &(struct files_moved){0});
	return true;
}

/* An archive with names that lead out, links, devices, and files that nobody listed. */
static bool answer_archive(struct chan *c, const struct files_request *q)
{
	static const char *const names[] = {
		"../out", "/out", "a/../../out", "unlisted", "mine", "f0", "f1"};
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);

	if (q->op == FILES_OP_LIST && q->path.n == 1) {
		say_entry(c, "dir", S_IFDIR | 0755, 0);
	} else if (q->op == FILES_OP_LIST) {
		struct frame_out f = frame_begin(c, FILES_ENTRIES);

		for (int i = 0; i < 10; i++) {
			char name[8];

			snprintf(name, sizeof(name), "f%d", i);
			put_entry(&f, name, S_IFREG | 04755, 1);
		}
		(void)!frame_end(&f, NULL, 0);
		(void)!files_send_moved(c, &(struct files_moved){0});
	} else if (q->op == FILES_OP_TAR_GET) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			const struct tar_entry e = {.type = i == 5 ? TAR_SYMLINK : TAR_FILE,
				.path = str_from(names[i]),
				.link = i == 5 ? STR("/etc/passwd") : STR_NULL,
				.size = i == 5 ? 0 : 1,
				.mode = 06777};

			must(tar_write_entry(&b, &e) == 0);
			if (i != 5)
				must(buf_add_str(&b, STR("x")) == 0 &&
					tar_write_padding(&b, 1) == 0);
		}
		(void)!chan_send(c, FILES_DATA, buf_str(&b), NULL, 0);
		say_error(c, EIO);
	} else {
		(void)!chan_send(c, FILES_DATA, STR("y"), NULL, 0);
		(void)!files_send_moved(c, &(struct files_moved){0});
	}
	return true;
}

/* --- tests --- */

static const struct {
	const char *what;
	bool (*answer)(struct chan *c, const struct files_request *q);
	int want;
	unsigned names; /* "mine" and what came of it */
	enum sync_event event;
	unsigned told;
} table[] = {
	{"the same name twice", answer_twice, -E_PROTOCOL, 1, 0, 0},
	{"a size that cannot be", answer_huge, -E_PROTOCOL, 1, 0, 0},
	{"more entries than the limit", answer_many, -E_LIMIT, 1, 0, 0},
	{"a file that is shorter", answer_shorter, 0, 1, SYNC_UNSTEADY, 1},
	{"a file that is longer", answer_longer, -E_PROTOCOL, 1, 0, 0},
	{"more bytes than the limit", answer_large, -E_LIMIT, 1, 0, 0},
	{"it dies in a file", answer_dies, -E_BROKEN, 1, 0, 0},
	{"a directory that is none", answer_vanishes, 0, 1, SYNC_UNREADABLE, 1},
	{"a link to nothing", answer_link, 0, 1, SYNC_UNREADABLE, 1},
	{"directories without end", answer_loop, 0, 2, SYNC_TOO_DEEP, 1},
};

static void lies(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(100);
		unsigned names = 0;
		int r = meet(table[i].answer, &names), dir = open(top, O_RDONLY | O_CLOEXEC);

		if (r != table[i].want || names != table[i].names)
			tap_fail("%s: %d (%s), %u names", table[i].what, r, err.message, names);
		if (told[table[i].event] != table[i].told && table[i].told)
			tap_fail("%s: told %u times", table[i].what, told[table[i].event]);
		check(fd_read_file(dir, "mine", &b, NULL) == 0 && str_eq(buf_str(&b), STR("mine")));
		close(dir);
	}
}

static void an_archive_brings_what_was_listed_alone(void)
{
	unsigned names = 0;
	struct stat st = {0};
	char path[TAP_DIR_BYTES + 16];

	check_int(meet(answer_archive, &names), 0);
	check_int((int)names, 2);
	for (int i = 0; i < 10; i++) {
		snprintf(path, sizeof(path), "%s/dir/f%d", top, i);
		check(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
		check_int(st.st_mode & 07777, 0755);
	}
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, i ? "out" : "dir/unlisted");
		check(lstat(path, &st) < 0);
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	tap_fast_dir(top);
	run_test(lies);
	run_test(an_archive_brings_what_was_listed_alone);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
