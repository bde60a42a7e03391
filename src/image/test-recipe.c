/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "image/recipe.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int add(struct recipe *r, const char *name, const char *data)
{
	return recipe_add_file(r, name, str_from(data), false, NULL);
}

static void check_hash(const struct recipe *r, const char *of)
{
	char hex[SHA256_HEX_MAX], want[SHA256_HEX_MAX];
	struct sha256 h;

	recipe_hash(r, hex);
	sha256_init(&h);
	sha256_add(&h, str_from(of));
	sha256_hex(&h, want);
	check_z(hex, want);
}

static void test_hash(void)
{
	_cleanup_(recipe_done) struct recipe r = {0};

	must(recipe_set_dockerfile(&r, STR("FROM scratch\n"), NULL) == 0);
	check_hash(&r, "FROM scratch\n");
	must(add(&r, "b", "2") == 0);
	must(add(&r, "a/x", "1") == 0);
	must(add(&r, "a", "0") == 0);
	check_hash(&r, "FROM scratch\na0a/x1b2");
	must(add(&r, "b", "three") == 0);
	check_int(r.n, 3);
	check_int(r.bytes, 7);
	check_hash(&r, "FROM scratch\na0a/x1bthree");
	must(recipe_add_file(&r, "b", STR("three"), true, NULL) == 0);
	check_hash(&r, "FROM scratch\na0a/x1bthree+x");
}

static void test_names(void)
{
	static const char *const bad[] = {
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\\b", "a/.."};
	static const char *const good[] = {"a", "a/b", "...", "a..b", ".dockerignore", " "};
	_cleanup_(recipe_done) struct recipe r = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (add(&r, bad[i], "") != -E_USAGE)
			tap_fail("\"%s\" was taken", bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (add(&r, good[i], "") != 0)
			tap_fail("\"%s\" was not taken", good[i]);
	check_int(r.n, ARRAY_SIZE(good));
}

static void test_directory(void)
{
	_cleanup_(recipe_done) struct recipe r = {0};
	char dir[TAP_DIR_BYTES];
	int fd;

	tap_dir(dir);
	must((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	must(mkdirat(fd, "sub", 0700) == 0);
	must(fs_write_atomic(fd, "Dockerfile", STR("FROM x"), 0600, false, NULL) == 0);
	must(fs_write_atomic(fd, "sub/run", STR("run"), 0700, false, NULL) == 0);
	must(fs_write_atomic(fd, "a", STR("a"), 0600, false, NULL) == 0);
	must(symlinkat("/etc/passwd", fd, "link") == 0);
	must(symlinkat("/etc", fd, "tree") == 0);
	must(mkfifoat(fd, "fifo", 0600) == 0);
	check_int(recipe_add_directory(&r, dir, "Dockerfile", NULL), 0);
	check_int(r.n, 2);
	check_z(r.files[0].name, "a");
	check_int(r.links, 2);
	check(strcmp(r.link, "link") == 0 || strcmp(r.link, "tree") == 0);
	check_z(r.files[1].name, "sub/run");
	check(r.files[1].executable && !r.files[0].executable);
	check(recipe_add_directory(&r, "/no/such", NULL, NULL) < 0);
	close(fd);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
}

static void test_limits(void)
{
	_cleanup_(recipe_done) struct recipe r = {0};
	_cleanup_(freep) char *much = calloc(1, (64 << 20) + 1);

	must(much);
	check_int(recipe_add_file(&r, "a", str_make(much, (64 << 20) + 1), false, NULL), -E_LIMIT);
	check_int(recipe_add_file(&r, "a", str_make(much, 60 << 20), false, NULL), 0);
	check_int(recipe_add_file(&r, "b", str_make(much, 5 << 20), false, NULL), -E_LIMIT);
	check_int(recipe_set_dockerfile(&r, str_make(much, (1 << 20) + 1), NULL), -E_LIMIT);
	check_int(r.n, 1);
}

static void test_overlay(void)
{
	char one[SHA256_HEX_MAX], two[SHA256_HEX_MAX];

	recipe_hash_overlay("cloche-repo:aa", recipe_entrypoint(false), one);
	recipe_hash_overlay("cloche-repo:aa", recipe_entrypoint(true), two);
	check(strcmp(one, two) != 0);
	recipe_hash_overlay("cloche-repo:ab", recipe_entrypoint(false), two);
	check(strcmp(one, two) != 0);
	check(strstr(recipe_entrypoint(true), "uv sync --quiet"));
	check(!strstr(recipe_entrypoint(false), "uv"));
}

int main(void)
{
	run_test(test_hash);
	run_test(test_names);
	run_test(test_directory);
	run_test(test_limits);
	run_test(test_overlay);
	return tap_done();
}
