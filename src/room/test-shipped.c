/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up host in a directory: what of its /etc is copied. */
#include "base/fd.h"
#include "base/md5.h"
#include "fs/fs.h"
#include "room/shipped.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir_path[TAP_DIR_BYTES];
static int dir, host, copy;

static const char *const named[] = {"etc/fonts", "etc/services", "etc/missing", NULL};
static const char *const without[] = {"etc/alternatives", NULL};
static const char *const none[] = {NULL};
static const struct shipped_own own[] = {{"etc/own", STR_NULL}, {"etc/own/a.conf", STR("ours\n")},
	{"etc/profile", STR("ours\n")}, {NULL, STR_NULL}};

static void put(const char *path, const char *text)
{
	char part[256];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		must(mkdirat(host, part, 0755) == 0 || errno == EEXIST);
	}
	must(fs_write_atomic(host, path, str_from(text), 0644, false, NULL) == 0);
}

static void put_link(const char *path, const char *to)
{
	must(symlinkat(to, host, path) == 0);
}

/* A line of dpkg's or ucf's database for a file that had this content. */
static void list(char *to, size_t max, bool ucf, const char *path, const char *text)
{
	char sum[MD5_HEX_MAX];
	size_t n = strlen(to);

	md5_hex(str_from(text), sum);
	if (ucf)
		snprintf(to + n, max - n, "%s  %s\n", sum, path);
	else
		snprintf(to + n, max - n, " %s %s\n", path, sum);
}

static bool has(const char *path, const char *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	return fd_read_file(copy, path, &b, NULL) == 0 && str_eq(buf_str(&b), str_from(text));
}

static bool is_there(const char *path)
{
	return faccessat(copy, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void begin(void)
{
	must(fs_remove_tree(dir, "host") == 0 && fs_remove_tree(dir, "copy") == 0);
	must(mkdirat(dir, "host", 0755) == 0 && mkdirat(dir, "copy", 0755) == 0);
	fd_close(host);
	fd_close(copy);
	host = openat(dir, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	copy = openat(dir, "copy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(host >= 0 && copy >= 0);
}

static void put_database(void)
{
	char status[4096] = "Package: tool\nStatus: install ok installed\nConffiles:\n";
	char hashes[1024] = "";

	list(status, sizeof(status), false, "/etc/tool/tool.conf", "shipped\n");
	list(status, sizeof(status), false, "/etc/tool/changed.conf", "shipped\n");
	list(status, sizeof(status), false, "/etc/tool/private.conf", "shipped\n");
	list(status, sizeof(status), false, "/etc/../secret", "shipped\n");
	list(status, sizeof(status), false, "/var/tool", "shipped\n");
	list(status, sizeof(status), false, "/etc/tool/linked.conf", "shipped\n");
	list(status, sizeof(status), false, "/etc/tool/old.conf", "old\n");
	/* As dpkg marks what a newer version no longer has. */
	snprintf(status + strlen(status) - 1, sizeof(status) - strlen(status), " obsolete\n");
	snprintf(status + strlen(status), sizeof(status) - strlen(status),
		"Description: nothing\n /etc/tool/described 8ffdefbdec956b595d257f0aaeefd623\n");
	put("var/lib/dpkg/status", status);
	list(hashes, sizeof(hashes), true, "/etc/tool/mods/curl.ini", "by ucf\n");
	list(hashes, sizeof(hashes), true, "/etc/tool/mods/own.ini", "by ucf\n");
	put("var/lib/ucf/hashfile", hashes);
}

static void test_shows_what_packages_brought(void)
{
	begin();
	put_database();
	put("etc/tool/tool.conf", "shipped\n");
	put("etc/tool/old.conf", "old\n");
	put("etc/tool/mods/curl.ini", "by ucf\n");
	put_link("etc/tool/20-curl.ini", "/etc/tool/mods/curl.ini");
	put_link("etc/tool/30-curl.ini", "./mods/../mods/curl.ini");
	put_link("etc/tool/mods.d", "mods");
	put_link("etc/tool/shared", "../../usr/share/tool");
	check(shipped_copy(host, copy, own, none, without) == 0);
	check(has("etc/tool/tool.conf", "shipped\n"));
	check(has("etc/tool/old.conf", "old\n"));
	check(has("etc/tool/mods/curl.ini", "by ucf\n"));
	check(is_there("etc/tool/20-curl.ini"));
	check(has("etc/tool/30-curl.ini", "by ucf\n"));
	check(has("etc/tool/mods.d/curl.ini", "by ucf\n"));
	check(is_there("etc/tool/shared"));
}

/* All of it may be read by everybody: that is no reason. */
static void test_hides_what_belongs_to_the_machine(void)
{
	begin();
	put_database();
	put("etc/tool/changed.conf", "shipped\npassword = x\n");
	put("etc/tool/mods/own.ini", "by ucf\npassword = x\n");
	put("etc/tool/credentials", "password = x\n");
	put("etc/tool/described", "shipped\n");
	put("etc/tool/private.conf", "shipped\n");
	put("secret", "shipped\n");
	put("var/tool", "shipped\n");
	must(fchmodat(host, "etc/tool/private.conf", 0640, 0) == 0);
	put_link("etc/tool/linked.conf", "../../var/tool");
	put_link("etc/tool/site", "credentials");
	put_link("etc/tool/away", "../../../var/tool");
	put_link("etc/tool/home", "/home/somebody");
	put("etc/alternatives/README", "x");
	put_link("etc/alternatives/vi", "/usr/bin/vim");
	check(shipped_copy(host, copy, own, none, without) == 0);
	check(is_there("etc") && !is_there("etc/tool"));
	check(!is_there("etc/alternatives/README") && !is_there("etc/alternatives/vi"));
	check(!is_there("var") && !is_there("secret"));
}

static void test_every_room_has_our_own(void)
{
	char status[512] = "Conffiles:\n";

	begin();
	put("etc/profile", "shipped\n");
	list(status, sizeof(status), false, "/etc/profile", "shipped\n");
	put("var/lib/dpkg/status", status);
	check(shipped_copy(host, copy, own, none, without) == 0);
	check(has("etc/own/a.conf", "ours\n") && has("etc/profile", "ours\n"));
}

static void test_what_is_mounted_has_a_place(void)
{
	static const char *const mounted[] = {"etc/alternatives", "etc/apt/keyrings",
		"etc/ld.so.cache", "etc/tool/link", "etc/missing/certs", NULL};

	begin();
	put("var/lib/dpkg/status", "");
	put("etc/alternatives/README", "x");
	put("etc/apt/keyrings/key", "x");
	put("etc/ld.so.cache", "cache");
	put("etc/tool/tool.conf", "x");
	put_link("etc/tool/link", "tool.conf");
	check(shipped_copy(host, copy, own, none, mounted) == 0);
	check(is_there("etc/alternatives") && !is_there("etc/alternatives/README"));
	check(is_there("etc/apt/keyrings") && !is_there("etc/apt/keyrings/key"));
	check(has("etc/ld.so.cache", "") && has("etc/tool/link", ""));
	check(!is_there("etc/missing"));
}

static void test_named_ones_are_copied_as_they_are(void)
{
	begin();
	put("etc/services", "changed here\n");
	put("etc/fonts/conf.d/own.conf", "own\n");
	put("etc/fonts/hidden.conf", "own\n");
	must(fchmodat(host, "etc/fonts/hidden.conf", 0600, 0) == 0);
	put("etc/tool/tool.conf", "shipped\n");
	check_int(shipped_copy(host, copy, own, named, without), -ENOENT);
	check(!is_there("etc"));
	put("var/lib/dpkg/status", "");
	check(shipped_copy(host, copy, own, named, without) == 0);
	check(has("etc/services", "changed here\n"));
	check(has("etc/fonts/conf.d/own.conf", "own\n"));
	check(!is_there("etc/fonts/hidden.conf") && !is_there("etc/tool"));
}

static void test_bounds(void)
{
	static char large[(1 << 20) + 2];
	char status[512] = "Conffiles:\n";

	begin();
	memset(large, 'x', sizeof(large) - 1);
	put("etc/large", large);
	list(status, sizeof(status), false, "/etc/large", large);
	put("var/lib/dpkg/status", status);
	check(shipped_copy(host, copy, own, none, without) == 0);
	check(!is_there("etc/large"));
}

/* The real /etc: the same copy as long as nothing changes; old ones go unless they are held. */
static void test_one_copy_for_each_state(void)
{
	_cleanup_fd_ int one = -1, two = -1, held = -1;
	struct stat a, b;

	begin();
	must(mkdirat(copy, ".etc-held", 0755) == 0 && mkdirat(copy, ".etc-old", 0755) == 0);
	must(mkdirat(copy, ".etc-old/etc", 0755) == 0 && mkdirat(copy, "other", 0755) == 0);
	held = openat(copy, ".etc-held", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(held >= 0 && flock(held, LOCK_SH) == 0);
	one = shipped_open(copy, own, named, without);
	two = shipped_open(copy, own, named, without);
	must(one >= 0 && two >= 0 && fstat(one, &a) == 0 && fstat(two, &b) == 0);
	check(a.st_ino == b.st_ino && (a.st_mode & 07777) == 0755);
	check(is_there(".etc-held") && !is_there(".etc-old") && is_there("other"));
	check(faccessat(one, "etc", F_OK, 0) == 0);
	check(faccessat(one, "etc/shadow", F_OK, 0) < 0 &&
		faccessat(one, "etc/passwd", F_OK, 0) < 0);
}

static void test_versions_keep_each_others_copy(void)
{
	static const struct shipped_own newer[] = {
		{"etc/profile", STR("newer\n")}, {NULL, STR_NULL}};
	_cleanup_fd_ int one = -1, two = -1, again = -1;
	struct stat a, b, c;

	begin();
	one = shipped_open(copy, own, named, without);
	must(one >= 0 && fstat(one, &a) == 0);
	one = fd_close(one);
	two = shipped_open(copy, newer, named, without);
	must(two >= 0 && fstat(two, &b) == 0);
	check(a.st_ino != b.st_ino && faccessat(two, "etc/own", F_OK, 0) < 0);
	again = shipped_open(copy, own, named, without);
	must(again >= 0 && fstat(again, &c) == 0);
	check(a.st_ino == c.st_ino && faccessat(again, "etc/own", F_OK, 0) == 0);
}

/* A version that shows less than another must not show what that has copied. */
static void test_versions_that_copy_other_files(void)
{
	_cleanup_fd_ int one = -1, two = -1, three = -1;
	struct stat a, b, c;

	begin();
	one = shipped_open(copy, own, named, without);
	two = shipped_open(copy, own, none, without);
	three = shipped_open(copy, own, none, none);
	must(one >= 0 && two >= 0 && three >= 0);
	must(fstat(one, &a) == 0 && fstat(two, &b) == 0 && fstat(three, &c) == 0);
	check(a.st_ino != b.st_ino && b.st_ino != c.st_ino && a.st_ino != c.st_ino);
}

int main(void)
{
	tap_dir(dir_path);
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0);
	host = copy = -1;
	run_test(test_shows_what_packages_brought);
	run_test(test_hides_what_belongs_to_the_machine);
	run_test(test_every_room_has_our_own);
	run_test(test_what_is_mounted_has_a_place);
	run_test(test_named_ones_are_copied_as_they_are);
	run_test(test_bounds);
	run_test(test_one_copy_for_each_state);
	run_test(test_versions_keep_each_others_copy);
	run_test(test_versions_that_copy_other_files);
	fs_remove_tree(AT_FDCWD, dir_path);
	return tap_done();
}
