/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a login, as the broker gets it and as it is replaced. */
#include "base/fd.h"
#include "fs/fs.h"
#include "supervisor/supervisor.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME ".credentials.json"
#define OLD "{\"old\":1}"

static char dir[TAP_DIR_BYTES];
static struct login_place place;

static void put(const char *text, unsigned mode)
{
	_cleanup_fd_ int fd = openat(place.dir, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static void begin(void)
{
	place = (struct login_place){.name = NAME, .lock = -1, .fresh = -1};
	place.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(place.dir >= 0);
	put(OLD, 0640);
}

static void end(void)
{
	login_place_close(&place);
	must(unlinkat(place.dir, NAME, 0) == 0);
	place.dir = fd_close(place.dir);
}

static void check_file(const char *want)
{
	struct buf text = BUF_INIT(1 << 20);

	must(fd_read_file(place.dir, NAME, &text, NULL) == 0);
	check_str(buf_str(&text), want);
	buf_done(&text);
}

static unsigned names(void)
{
	DIR *list = fs_list(place.dir, ".");
	unsigned n = 0;

	must(list);
	while (fs_list_next(list))
		n++;
	closedir(list);
	return n;
}

static void test_replaced(void)
{
	struct buf text = BUF_INIT(1024);
	struct stat st;
	int file = -1;

	begin();
	check_int(login_place_open(&place, &file), 0);
	must(fd_read_to_end(file, &text) == 0);
	check_str(buf_str(&text), OLD);
	check_int(write(file, "x", 1), -1);
	must(fd_write_all(place.fresh, "{\"new\":2}", 9) == 0);
	check_int(login_place_replace(&place), 0);
	login_place_close(&place);
	check_file("{\"new\":2}");
	must(fstatat(place.dir, NAME, &st, 0) == 0);
	check_int(st.st_mode & 07777, 0640);
	check_int(names(), 1);
	fd_close(file);
	buf_done(&text);
	end();
}

/* What somebody else has written meanwhile stays. */
static void test_changed_meanwhile(void)
{
	int file = -1;

	begin();
	check_int(login_place_open(&place, &file), 0);
	must(fd_write_all(place.fresh, "{\"new\":2}", 9) == 0);
	put("{\"other\":3}", 0600);
	check_int(login_place_replace(&place), ESTALE);
	check_file("{\"other\":3}");
	check_int(names(), 1);
	fd_close(file);
	end();
}

static void test_locked(void)
{
	struct login_place other;
	int file = -1, second = -1;

	begin();
	other = place;
	check_int(login_place_open(&place, &file), 0);
	check_int(login_place_open(&place, &second), EBUSY);
	check_int(login_place_open(&other, &second), EAGAIN);
	login_place_close(&place);
	check_int(login_place_open(&other, &second), 0);
	login_place_close(&other);
	fd_close(file);
	fd_close(second);
	end();
}

static void make_own_lock(time_t age)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};

	must(mkdirat(place.dir, "own.lock", 0700) == 0);
	must(utimensat(place.dir, "own.lock", times, 0) == 0);
}

static bool is_there(const char *name)
{
	return faccessat(place.dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The lock of the program whose login it is: heeded, made, and taken over from one that died. */
static void test_own_lock(void)
{
	int file = -1;

	begin();
	place.lock_name = "own.lock";
	make_own_lock(1);
	check_int(login_place_open(&place, &file), EAGAIN);
	check(place.lock < 0 && is_there("own.lock"));
	must(unlinkat(place.dir, "own.lock", AT_REMOVEDIR) == 0);
	check_int(login_place_open(&place, &file), 0);
	check(is_there("own.lock"));
	login_place_close(&place);
	check(!is_there("own.lock"));
	file = fd_close(file);
	make_own_lock(60);
	check_int(login_place_open(&place, &file), 0);
	login_place_close(&place);
	check(!is_there("own.lock"));
	file = fd_close(file);
	/* What is no directory is not removed. */
	must(symlinkat(NAME, place.dir, "own.lock") == 0);
	check_int(login_place_open(&place, &file), EAGAIN);
	check(is_there("own.lock"));
	must(unlinkat(place.dir, "own.lock", 0) == 0);
	/* Without the file there is no lock either. */
	must(renameat(place.dir, NAME, place.dir, "kept") == 0);
	check_int(login_place_open(&place, &file), ENOENT);
	check(!is_there("own.lock"));
	must(renameat(place.dir, "kept", place.dir, NAME) == 0);
	place.lock_name = "";
	end();
}

/* Nothing is put into place that the broker has not filled, or without end. */
static void test_odd_content(void)
{
	int file = -1;

	begin();
	check_int(login_place_replace(&place), EINVAL);
	check_int(login_place_open(&place, &file), 0);
	check_int(login_place_replace(&place), EINVAL);
	must(ftruncate(place.fresh, 1 << 30) == 0);
	check_int(login_place_replace(&place), EINVAL);
	check_file(OLD);
	check_int(names(), 1);
	fd_close(file);
	end();
}

/* A link, a pipe, a directory, a file without end: whoever can write there puts them. */
static void test_odd_files(void)
{
	int file = -1;

	begin();
	must(unlinkat(place.dir, NAME, 0) == 0);
	check_int(login_place_open(&place, &file), ENOENT);
	must(symlinkat("/etc/passwd", place.dir, NAME) == 0);
	check_int(login_place_open(&place, &file), ELOOP);
	must(unlinkat(place.dir, NAME, 0) == 0 && mkfifoat(place.dir, NAME, 0600) == 0);
	check_int(login_place_open(&place, &file), EINVAL);
	must(unlinkat(place.dir, NAME, 0) == 0 && mkdirat(place.dir, NAME, 0700) == 0);
	check_int(login_place_open(&place, &file), EINVAL);
	must(unlinkat(place.dir, NAME, AT_REMOVEDIR) == 0);
	put("x", 0600);
	file = openat(place.dir, NAME, O_WRONLY | O_CLOEXEC);
	must(file >= 0 && ftruncate(file, 1 << 30) == 0);
	file = fd_close(file);
	check_int(login_place_open(&place, &file), EINVAL);
	check(place.lock < 0 && place.fresh < 0);
	end();
}

/* A link that takes the name later is replaced, and what it leads to is not touched. */
static void test_link_later(void)
{
	int file = -1;

	begin();
	check_int(login_place_open(&place, &file), 0);
	must(fd_write_all(place.fresh, "{\"new\":2}", 9) == 0);
	must(renameat(place.dir, NAME, place.dir, "kept") == 0);
	must(symlinkat("kept", place.dir, NAME) == 0);
	check_int(login_place_replace(&place), ESTALE);
	must(unlinkat(place.dir, NAME, 0) == 0);
	must(renameat(place.dir, "kept", place.dir, NAME) == 0);
	check_file(OLD);
	fd_close(file);
	end();
}

static _Noreturn void replace_for_ever(void)
{
	for (unsigned i = 0;; i++) {
		int file = -1;
		char text[64];
		int n = snprintf(text, sizeof(text), "{\"number\":%u}", i);

		if (login_place_open(&place, &file) != 0 ||
			fd_write_all(place.fresh, text, (size_t)n) != 0 ||
			login_place_replace(&place) != 0)
			_exit(1);
		login_place_close(&place);
		close(file);
	}
}

/* kill -9 at any moment leaves a whole file, and the next one is not hindered. */
static void test_killed(void)
{
	struct buf text = BUF_INIT(1024);

	begin();
	for (int i = 0; i < 100; i++) {
		int status, file = -1;
		pid_t pid = fork();

		must(pid >= 0);
		if (pid == 0)
			replace_for_ever();
		usleep((useconds_t)(i * 37 % 2000));
		must(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
		check(WIFSIGNALED(status));
		buf_clear(&text);
		must(fd_read_file(place.dir, NAME, &text, NULL) == 0);
		check(str_starts(buf_str(&text), STR("{\"")) && str_ends(buf_str(&text), STR("}")));
		check_int(login_place_open(&place, &file), 0);
		login_place_close(&place);
		fd_close(file);
	}
	buf_done(&text);
	login_place_close(&place);
	fs_remove_tree(place.dir, NAME);
	put(OLD, 0600);
	end();
}

int main(void)
{
	tap_dir(dir);
	run_test(test_replaced);
	run_test(test_changed_meanwhile);
	run_test(test_locked);
	run_test(test_own_lock);
	run_test(test_odd_content);
	run_test(test_odd_files);
	run_test(test_link_later);
	run_test(test_killed);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
