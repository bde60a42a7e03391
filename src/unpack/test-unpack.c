/* SPDX-License-Identifier: Apache-2.0 */
/* Layers themselves are unpacked in tests/integration/test-image. */
#include "tap.h"
#include "unpack/unpack.h"

#include <limits.h>
#include <string.h>

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

int main(void)
{
	run_test(test_paths);
	run_test(test_lengths);
	return tap_done();
}
