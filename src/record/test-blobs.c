/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "record/blobs.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int dirfd_ = -1;

/* printf abc | sha256sum */
#define ABC "sha256-ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void put_blob(struct str data, char ret[STATE_REF_BYTES + 1])
{
	_cleanup_(blob_donep) struct blob_writer w = BLOB_WRITER_INIT;

	must(blob_begin(&w, dirfd_, NULL) == 0);
	must(blob_add(&w, str_prefix(data, data.n / 2), NULL) == 0);
	must(blob_add(&w, str_from_index(data, data.n / 2), NULL) == 0);
	must(blob_finish(&w, true, ret, NULL) == 0);
}

static void check_content(const char *ref, struct str want)
{
	_cleanup_(buf_donep) struct buf got = BUF_INIT(1 << 20);
	_cleanup_fd_ int fd = blob_open(dirfd_, str_from(ref), NULL);

	must(fd >= 0);
	check_int(blob_check(fd, str_from(ref), NULL), 0);
	must(fd_read_to_end(fd, &got) == 0);
	check(str_eq(buf_str(&got), want));
}

static void test_there_and_back(void)
{
	char bytes[256], ref[STATE_REF_BYTES + 1], again[STATE_REF_BYTES + 1];

	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	put_blob(STR("abc"), ref);
	check_z(ref, ABC);
	put_blob(STR("abc"), again);
	check_z(again, ABC);
	check_content(ABC, STR("abc"));
	put_blob(str_make(bytes, sizeof(bytes)), ref);
	check(strcmp(ref, ABC) != 0);
	check_content(ref, str_make(bytes, sizeof(bytes)));
	put_blob(STR(""), ref);
	check_content(ref, STR(""));
}

static void test_missing_and_changed(void)
{
	char ref[STATE_REF_BYTES + 1];
	int fd;

	check_int(blob_open(dirfd_, STR(ABC "0"), NULL), -E_USAGE);
	check_int(blob_open(dirfd_,
			  STR("sha256-../../../../../../../../../../../../../../etc/pass"
			      "wd000000000"),
			  NULL),
		-E_USAGE);
	put_blob(STR("abc"), ref);
	fd = openat(dirfd_, ABC, O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && pwrite(fd, "x", 1, 0) == 1);
	fd_close(fd);
	fd = blob_open(dirfd_, STR(ABC), NULL);
	must(fd >= 0);
	check_int(blob_check(fd, STR(ABC), NULL), -E_CORRUPT);
	fd_close(fd);
	must(unlinkat(dirfd_, ABC, 0) == 0);
	check_int(blob_open(dirfd_, STR(ABC), NULL), -E_NOT_FOUND);
	/* a link in its place leads nowhere */
	must(symlinkat("/etc/passwd", dirfd_, ABC) == 0);
	check(blob_open(dirfd_, STR(ABC), NULL) < 0);
	must(unlinkat(dirfd_, ABC, 0) == 0);
}

static bool is_abc(struct str ref, void *user)
{
	++*(int *)user;
	return str_eq(ref, STR(ABC));
}

static void test_collecting(void)
{
	char ref[STATE_REF_BYTES + 1];
	struct blob_writer torn = BLOB_WRITER_INIT;
	uint64_t bytes;
	int asked = 0, lock, fd;

	put_blob(STR("abc"), ref);
	put_blob(STR("four"), ref);
	must(blob_begin(&torn, dirfd_, NULL) == 0);
	must(blob_add(&torn, STR("of a crash"), NULL) == 0);
	fd = openat(dirfd_, "notes.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0);
	fd_close(fd);
	lock = blobs_lock(dirfd_, true, NULL);
	must(lock >= 0);
	check(blobs_collect(dirfd_, is_abc, &asked, &bytes, NULL) >= 2);
	check(bytes >= 14);
	check(asked >= 2);
	check_content(ABC, STR("abc"));
	check_int(faccessat(dirfd_, ref, F_OK, 0), -1);
	check_int(faccessat(dirfd_, torn.name, F_OK, 0), -1);
	check_int(faccessat(dirfd_, "notes.txt", F_OK, 0), 0);
	fd_close(lock);
	fd_close(torn.fd);
}

/* Who looks for what nobody names waits for who is about to name something. */
static void test_lock(void)
{
	int one = blobs_lock(dirfd_, false, NULL), two = blobs_lock(dirfd_, false, NULL), status;
	pid_t pid = fork();

	must(one >= 0 && two >= 0 && pid >= 0);
	if (pid == 0) {
		fd_close(one);
		fd_close(two);
		_exit(blobs_lock(dirfd_, true, NULL) < 0);
	}
	usleep(50000);
	check_int(waitpid(pid, &status, WNOHANG), 0);
	fd_close(one);
	fd_close(two);
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

int main(void)
{
	tap_fast_dir(dir);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd_ >= 0);
	run_test(test_there_and_back);
	run_test(test_missing_and_changed);
	run_test(test_collecting);
	run_test(test_lock);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
