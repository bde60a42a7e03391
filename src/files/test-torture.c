/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation fails once: whatever was under way ends with ENOMEM or in success, leaks nothing,
 * and leaves nothing half done. */
#include "files/beneath.h"
#include "files/tree.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int dir;
static struct buf whole = {.max = 1 << 20};

/* What a call may answer while one allocation in it fails. */
static void check_answer(int r)
{
	if (torture_failed ? r != 0 && r != -ENOMEM : r != 0)
		tap_fail("answer %d", r);
}

static int sink(void *user, const char *p, size_t n, struct files_error *e)
{
	return 0;
}

static int keep(void *user, const char *p, size_t n, struct files_error *e)
{
	return buf_add(user, p, n);
}

static void get(void)
{
	struct files_error e = {0};
	struct tree_get t = {.dir = dir, .name = "from", .as = STR("."), .sink = sink};
	int r = tree_get(&t, &e);

	check_answer(r);
	check_int(e.sys_errno, -r);
}

static void put(void)
{
	struct tree_put_options o = {.dir = openat(dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	struct tree_put *t = tree_put_new(&o);
	struct files_error e = {0};
	int r = t ? tree_put_feed(t, buf_data(&whole), buf_len(&whole), &e) : -ENOMEM;
	struct dirent *d;
	DIR *list;

	if (r == 0)
		r = tree_put_finish(t, &e);
	check_answer(r);
	tree_put_free(t);
	list = fdopendir(o.dir);
	while (list && (d = readdir(list)))
		if (strncmp(d->d_name, ".cloche-", 8) == 0)
			tap_fail("%s was left", d->d_name);
	if (list)
		closedir(list);
}

static void find(void)
{
	struct beneath at = BENEATH_NULL;

	check_answer(beneath_find(dir, STR("/from"), STR("link/../d/e/../e/f"), 0, &at));
	beneath_done(&at);
}

static void remove_all(void)
{
	_cleanup_(buf_donep) struct buf where = BUF_INIT(4096);
	const struct fs_removal how = {.where = &where};

	(void)!mkdirat(dir, "gone", 0755);
	(void)!mkdirat(dir, "gone/a", 0755);
	(void)!mkdirat(dir, "gone/a/b", 0755);
	check_answer(fs_remove(dir, "gone", &how));
}

static void each_allocation_fails(void)
{
	torture(get);
	torture(put);
	torture(find);
	torture(remove_all);
}

int main(void)
{
	struct tree_get t = {.name = "from", .as = STR("."), .sink = keep, .user = &whole};
	char long_name[201];

	memset(long_name, 'n', 200);
	long_name[200] = '\0';
	tap_fast_dir(top);
	dir = t.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0);
	must(mkdirat(dir, "from", 0755) == 0 && mkdirat(dir, "to", 0755) == 0);
	must(mkdirat(dir, "from/d", 0755) == 0 && mkdirat(dir, "from/d/e", 0755) == 0);
	must(fs_write_atomic(dir, "from/d/e/f", STR("text"), 0644, false, NULL) == 0);
	must(linkat(dir, "from/d/e/f", dir, "from/again", 0) == 0);
	must(symlinkat("d", dir, "from/link") == 0);
	must(symlinkat(long_name, dir, "from/long") == 0);
	must(tree_get(&t, NULL) == 0);
	run_test(each_allocation_fails);
	buf_done(&whole);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
