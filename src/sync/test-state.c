/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "sync/state.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cloche_err err;

static void add(struct sync_state *s, const char *path, enum sync_type type)
{
	struct sync_node *n = sync_state_add(s, str_from(path));

	must(n);
	n->before = (struct sync_before){.type = type,
		.unsure_there = true,
		.mode = 0640,
		.size = 12345,
		.here = {-1, 999999999},
		.there = {1700000000, 5}};
	memset(n->before.digest, 0xa5, SHA256_BYTES);
}

static off_t size_of(int fd)
{
	struct stat st;

	must(fstat(fd, &st) == 0);
	return st.st_size;
}

static int new_file(void)
{
	int fd = memfd_create("state", MFD_CLOEXEC);

	must(fd >= 0);
	return fd;
}

static void what_is_written_is_read(void)
{
	_cleanup_(sync_state_donep) struct sync_state s = {.phase = SYNC_WHOLE}, got = {0};
	_cleanup_fd_ int fd = new_file();
	const struct sync_node *n;

	check_int(sync_state_read(fd, &got, &err), 0);
	check_int(got.phase, SYNC_FRESH);
	add(&s, "a", SYNC_DIRECTORY);
	add(&s, "a/\xff\n", SYNC_FILE);
	add(&s, "link", SYNC_LINK);
	must(sync_state_add(&s, STR("never-alike")));
	check_int(sync_state_write(fd, &s, &err), 0);
	check_int(sync_state_read(fd, &got, &err), 0);
	check_int(got.phase, SYNC_WHOLE);
	check_int((int)HASH_COUNT(got.nodes), 3);
	n = sync_state_find(&got, STR("a/\xff\n"));
	must(n);
	check_int(n->before.type, SYNC_FILE);
	check(n->before.unsure_there && !n->before.unsure_here);
	check_int(n->before.mode, 0640);
	check_int((int)n->before.size, 12345);
	check(n->before.here.sec == -1 && n->before.here.nsec == 999999999);
	check(n->before.there.sec == 1700000000 && n->before.there.nsec == 5);
	check_int(n->before.digest[31], 0xa5);
}

/* The file does not grow with each time. */
static void it_is_written_again_and_again(void)
{
	_cleanup_(sync_state_donep) struct sync_state s = {.phase = SYNC_WHOLE};
	_cleanup_fd_ int fd = new_file();

	for (int i = 0; i < 50; i++) {
		_cleanup_(sync_state_donep) struct sync_state got = {0};
		char name[20];

		snprintf(name, sizeof(name), "file-%d", i);
		add(&s, name, SYNC_FILE);
		check_int(sync_state_write(fd, &s, &err), 0);
		check_int(sync_state_read(fd, &got, &err), 0);
		check_int((int)HASH_COUNT(got.nodes), i + 1);
	}
	check(size_of(fd) < 3 * 50 * 130);
}

/* Whoever is killed before the new head is written leaves the old state. */
static void the_old_state_is_whole_until_the_new_one_is(void)
{
	_cleanup_(sync_state_donep) struct sync_state s = {.phase = SYNC_WHOLE}, got = {0};
	_cleanup_fd_ int fd = new_file();
	char head[128];

	add(&s, "old", SYNC_FILE);
	check_int(sync_state_write(fd, &s, &err), 0);
	must(pread(fd, head, sizeof(head), 0) == sizeof(head));
	add(&s, "new", SYNC_FILE);
	check_int(sync_state_write(fd, &s, &err), 0);
	must(pwrite(fd, head, sizeof(head), 0) == sizeof(head));
	check_int(sync_state_read(fd, &got, &err), 0);
	check_int((int)HASH_COUNT(got.nodes), 1);
}

static void what_is_damaged_is_refused(void)
{
	_cleanup_(sync_state_donep) struct sync_state s = {.phase = SYNC_WHOLE}, got = {0};
	_cleanup_fd_ int fd = new_file();
	off_t size;

	add(&s, "a", SYNC_FILE);
	check_int(sync_state_write(fd, &s, &err), 0);
	size = size_of(fd);
	for (off_t at = 0; at < size; at++) {
		char was, now;
		bool unused = at >= 16 + 3 * 8 + SHA256_BYTES && at < 128;
		int r;

		must(pread(fd, &was, 1, at) == 1);
		now = (char)~was;
		must(pwrite(fd, &now, 1, at) == 1);
		r = sync_state_read(fd, &got, &err);
		if ((r != -E_CORRUPT) != unused)
			tap_fail("byte %lld: %d", (long long)at, r);
		sync_state_done(&got);
		must(pwrite(fd, &was, 1, at) == 1);
	}
	must(ftruncate(fd, size - 1) == 0);
	check_int(sync_state_read(fd, &got, &err), -E_CORRUPT);
	must(ftruncate(fd, 10) == 0);
	check_int(sync_state_read(fd, &got, &err), -E_CORRUPT);
}

static void paths(void)
{
	static const struct {
		const char *path;
		bool clean;
	} table[] = {{"a", true}, {"a/b", true}, {"...", true}, {"a/..b", true}, {"", false},
		{"/a", false}, {"a/", false}, {"a//b", false}, {".", false}, {"a/../b", false},
		{"a/.", false}};
	char name[300];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (sync_path_is_clean(str_from(table[i].path)) != table[i].clean)
			tap_fail("%s", table[i].path);
	memset(name, 'x', sizeof(name));
	check(sync_path_is_clean(str_make(name, 255)));
	check(!sync_path_is_clean(str_make(name, 256)));
	check(!sync_path_is_clean(str_make("a\0b", 3)));
}

static void a_directory_is_before_what_is_in_it(void)
{
	static const char *const want[] = {"a", "a/b", "a/b/c", "a/b-", "a-", "a.b", "b"};
	_cleanup_(sync_state_donep) struct sync_state s = {0};
	_cleanup_(freep) struct sync_node **v = NULL;

	for (size_t i = ARRAY_SIZE(want); i > 0; i--)
		add(&s, want[i - 1], SYNC_FILE);
	must((v = sync_state_sorted(&s)) != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		check_z(v[i]->path, want[i]);
}

int main(void)
{
	run_test(what_is_written_is_read);
	run_test(it_is_written_again_and_again);
	run_test(the_old_state_is_whole_until_the_new_one_is);
	run_test(what_is_damaged_is_refused);
	run_test(paths);
	run_test(a_directory_is_before_what_is_in_it);
	return tap_done();
}
