/* SPDX-License-Identifier: Apache-2.0 */
/* Layers themselves are unpacked in tests/integration/test-image. */
#include "base/fd.h"
#include "fs/fs.h"
#include "tap.h"
#include "unpack/unpack.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void expect_path(const char *path, const char *want)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char clean[PATH_MAX];

	if (!want) {
		check_int(unpack_path(path, clean, &err), -E_CORRUPT);
		return;
	}
	check_int(unpack_path(path, clean, &err), 0);
	check_str(str_from(clean), want);
}

static void test_paths(void)
{
	expect_path("", "");
	expect_path(".", "");
	expect_path("./", "");
	expect_path("a", "a");
	expect_path("./a//b/./c/", "a/b/c");
	expect_path("a/...", "a/...");
	expect_path("..a/b..", "..a/b..");
	expect_path("/", NULL);
	expect_path("/a", NULL);
	expect_path("..", NULL);
	expect_path("../a", NULL);
	expect_path("a/../b", NULL);
	expect_path("a/..", NULL);
}

static void test_lengths(void)
{
	char path[2 * UNPACK_DEPTH_MAX + 8] = "", name[NAME_MAX + 2] = "";

	memset(name, 'n', NAME_MAX);
	expect_path(name, name);
	name[NAME_MAX] = 'n';
	expect_path(name, NULL);
	for (size_t i = 0; i < UNPACK_DEPTH_MAX; i++)
		memcpy(path + 2 * i, "d/", 3);
	path[2 * UNPACK_DEPTH_MAX - 1] = '\0';
	expect_path(path, path);
	memcpy(path + 2 * UNPACK_DEPTH_MAX - 1, "/e", 3);
	expect_path(path, NULL);
}

/* A file that is too large for ustar. Its data ends in a full pipe, behind the headers. */
static void test_large_file(void)
{
	char top[TAP_DIR_BYTES], out[2048] = "";
	struct cloche_err err = CLOCHE_ERR_INIT;
	int list = memfd_create("list", MFD_CLOEXEC), p[2], dir, big;

	tap_dir(top);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0 && list >= 0 && write(list, "a big\n", 6) == 6);
	must(lseek(list, 0, SEEK_SET) == 0 && fd_pipe(p) == 0);
	must(fcntl(p[1], F_SETFL, O_NONBLOCK) == 0);
	big = openat(dir, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(big >= 0 && ftruncate(big, 8LL << 30) == 0);
	check(unpack_pack(p[1], dir, list, &err) < 0);
	check(read(p[0], out, sizeof(out)) == (ssize_t)sizeof(out));
	check_int(out[156], 'x');
	check(memmem(out + 512, 512, "size=8589934592\n", 16));
	must(fs_remove_tree(AT_FDCWD, top) == 0);
	close(big);
	close(dir);
	close(list);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	run_test(test_paths);
	run_test(test_lengths);
	run_test(test_large_file);
	return tap_done();
}
