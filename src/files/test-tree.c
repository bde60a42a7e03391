/* SPDX-License-Identifier: Apache-2.0 */
/* Trees to archives and back: what comes out is what went in, and no archive, however it was made,
 * changes anything outside its directory. */
#include "base/fd.h"
#include "base/rand.h"
#include "files/tree.h"
#include "fs/fs.h"
#include "seeded.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUT_MAX = 64 * 1024 * 1024 };

static char top[TAP_DIR_BYTES];
static int dir; /* of this test program */

static int gather(void *user, const char *p, size_t n, struct files_error *e)
{
	check(n > 0 && n <= FILES_CHUNK);
	return buf_add(user, p, n) < 0 ? files_fail(e, ENOMEM, STR_NULL, NULL) : 0;
}

static int pack(const char *name, struct str as, struct buf *out, struct files_error *e)
{
	struct tree_get t = {.dir = dir, .name = name, .as = as, .sink = gather, .user = out};

	*e = (struct files_error){0};
	return tree_get(&t, e);
}

/* Into a directory, in pieces of random sizes. */
static int unpack(const char *to, struct str archive, const char *single, struct files_error *e)
{
	int fd = openat(dir, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct tree_put_options o = {.dir = fd, .dir_is_new = true, .single = single};
	struct tree_put *t;

	must(fd >= 0);
	t = tree_put_new(&o);
	must(t);
	*e = (struct files_error){0};
	while (r == 0 && archive.n) {
		size_t n = MIN(archive.n, (size_t)1 + rand_below(5000));

		r = tree_put_feed(t, archive.p, n, e);
		archive = str_from_index(archive, n);
	}
	if (r == 0)
		r = tree_put_finish(t, e);
	tree_put_free(t);
	close(fd);
	return r;
}

static void fresh(const char *name)
{
	(void)fs_remove_tree(dir, name);
	must(mkdirat(dir, name, 0755) == 0);
}

/* --- round trip --- */

static void random_name(char *name)
{
	size_t n = rand_below(10) ? 1 + rand_below(20) : 255;

	for (size_t i = 0; i < n; i++)
		do
			name[i] = (char)(1 + rand_below(255));
		while (name[i] == '/');
	name[n] = '\0';
	if (name[0] == '.')
		name[0] = 'd';
}

static void random_file(int at, const char *name)
{
	static char bytes[300000];
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	size_t n = rand_below(4) ? rand_below(2000) : rand_below(sizeof(bytes));

	must(fd >= 0);
	rand_bytes(bytes, n);
	if (rand_below(3) == 0)
		memset(bytes, 0, n);
	must(fd_write_all(fd, bytes, n) == 0);
	/* An ordinary user cannot pack what he may not read. */
	must(fchmod(fd, rand_below(01000) | (geteuid() ? 0400 : 0)) == 0);
	close(fd);
}

static void random_tree(int at, unsigned depth)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = rand_below(2000000000), .tv_nsec = rand_below(1000000000)}};
	char name[256], first[256] = "";

	for (unsigned i = 2 + rand_below(6); i > 0; i--) {
		random_name(name);
		switch (rand_below(depth ? 6 : 4)) {
		case 0:
			(void)!symlinkat("some/where/../\xff else", at, name);
			break;
		case 1:
			if (first[0])
				(void)!linkat(at, first, at, name, 0);
			break;
		case 2:
			(void)!mkfifoat(at, name, 0640);
			break;
		case 3:
			if (faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				break;
			random_file(at, name);
			memcpy(first, name, sizeof(first));
			break;
		default:
			if (mkdirat(at, name, 0700) == 0) {
				int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

				must(fd >= 0);
				random_tree(fd, depth - 1);
				must(fchmod(fd, 0700 | rand_below(0100)) == 0);
				close(fd);
			}
		}
		(void)!utimensat(at, name, times, AT_SYMLINK_NOFOLLOW);
	}
	must(futimens(at, times) == 0);
}

static void round_trip(void)
{
	for (unsigned round = tap_rounds(25); round > 0; round--) {
		_cleanup_(buf_donep) struct buf one = BUF_INIT(OUT_MAX), two = BUF_INIT(OUT_MAX);
		struct files_error e;
		int from;

		fresh("from");
		fresh("to");
		from = openat(dir, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		random_tree(from, 4);
		close(from);
		check_int(pack("from", STR("."), &one, &e), 0);
		check_int(unpack("to", buf_str(&one), NULL, &e), 0);
		check_z(e.why, "");
		/* The archive has everything that matters: names, contents, modes, times, links. */
		check_int(pack("to", STR("."), &two, &e), 0);
		check(str_eq(buf_str(&one), buf_str(&two)));
		/* Once more over what is there. */
		check_int(unpack("to", buf_str(&one), NULL, &e), 0);
		buf_clear(&two);
		check_int(pack("to", STR("."), &two, &e), 0);
		check_int(buf_len(&two), buf_len(&one));
	}
}

/* Deeper than a path can be long, and than descriptors can be many. */
static void deep_trees(void)
{
	_cleanup_(buf_donep) struct buf one = BUF_INIT(OUT_MAX), two = BUF_INIT(OUT_MAX);
	struct files_error e;
	int at, next;

	fresh("from");
	fresh("to");
	at = openat(dir, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 1100; i++) {
		must(mkdirat(at, "level", 0755) == 0);
		next = openat(at, "level", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0);
		close(at);
		at = next;
	}
	must(symlinkat("x", at, "leaf") == 0);
	close(at);
	check_int(pack("from", STR("top"), &one, &e), 0);
	check_int(unpack("to", buf_str(&one), NULL, &e), 0);
	check_int(pack("to/top", STR("top"), &two, &e), 0);
	check(str_eq(buf_str(&one), buf_str(&two)));
	check_int(fs_remove_tree(dir, "to"), 0);
	check(faccessat(dir, "to", F_OK, 0) < 0);
}

/* --- archives that mean harm --- */

struct item {
	enum tar_type type;
	const char *path, *link, *text;
	uint32_t mode;
};

static void archive(const struct item *items, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct item *it = &items[i];
		struct tar_entry e = {.type = it->type,
			.path = str_from(it->path),
			.link = str_from(it->link),
			.mode = it->mode ? it->mode : 0644,
			.size = it->text ? strlen(it->text) : 0};

		must(tar_write_entry(out, &e) == 0);
		must(buf_add_str(out, str_from(it->text)) == 0);
		must(tar_write_padding(out, e.size) == 0);
	}
	must(tar_write_end(out) == 0);
}

/* Nothing beside the directory has changed, and no temporary file is left in it. */
static void check_untouched(const char *what)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);
	struct dirent *d;
	struct stat st;
	DIR *list;
	int fd;

	must(fd_read_file(dir, "victim/file", &b, NULL) == 0);
	if (!str_eq(buf_str(&b), STR("as it was")))
		tap_fail("%s: a file outside was changed", what);
	if (fstatat(dir, "victim/planted", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		fstatat(dir, "planted", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		access("/planted", F_OK) == 0)
		tap_fail("%s: something was made outside", what);
	must(fstatat(dir, "victim/file", &st, 0) == 0);
	if ((st.st_mode & 07777) != 0600)
		tap_fail("%s: a mode outside was changed", what);
	fd = openat(dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = fdopendir(fd);
	must(list);
	while ((d = readdir(list)))
		if (strncmp(d->d_name, ".cloche-", 8) == 0)
			tap_fail("%s: %s was left", what, d->d_name);
	closedir(list);
}

#define ITEMS(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void nothing_leads_out(void)
{
	static const struct {
		const char *what;
		struct item items[3];
		int want;
	} table[] = {
		{"dots", ITEMS({TAR_FILE, "../planted", NULL, "x"}), -EXDEV},
		{"dots within", ITEMS({TAR_FILE, "a/../../planted", NULL, "x"}), -EXDEV},
		{"dots at the end", ITEMS({TAR_DIRECTORY, "a/..", NULL, NULL}), -EXDEV},
		{"absolute", ITEMS({TAR_FILE, "/planted", NULL, "x"}), 0},
		{"link, then through it",
			ITEMS({TAR_SYMLINK, "l", "../victim", NULL},
				{TAR_FILE, "l/planted", NULL, "x"}),
			-ELOOP},
		{"link, then its target as a directory",
			ITEMS({TAR_SYMLINK, "l", "../victim", NULL},
				{TAR_DIRECTORY, "l", NULL, NULL, 0777}),
			-ELOOP},
		{"link, then over it",
			ITEMS({TAR_SYMLINK, "l", "../victim/file", NULL},
				{TAR_FILE, "l", NULL, "x"}),
			0},
		{"link deep down",
			ITEMS({TAR_DIRECTORY, "d", NULL, NULL}, {TAR_SYMLINK, "d/l", "../..", NULL},
				{TAR_FILE, "d/l/victim/planted", NULL, "x"}),
			-ELOOP},
		{"hard link to outside", ITEMS({TAR_HARDLINK, "h", "../victim/file", NULL}),
			-EXDEV},
		{"hard link by absolute path", ITEMS({TAR_HARDLINK, "h", "/etc/passwd", NULL}),
			-ENOENT},
		{"hard link through a link",
			ITEMS({TAR_SYMLINK, "l", "../victim", NULL},
				{TAR_HARDLINK, "h", "l/file", NULL}),
			-ELOOP},
		{"hard link to a link, then over it",
			ITEMS({TAR_SYMLINK, "l", "../victim/file", NULL},
				{TAR_HARDLINK, "h", "l", NULL}, {TAR_FILE, "h", NULL, "x"}),
			0},
		{"hard link to itself", ITEMS({TAR_HARDLINK, "h", "h", NULL}), -ENOENT},
		{"hard link to the top", ITEMS({TAR_HARDLINK, "h", ".", NULL}), -ENOENT},
		{"device", ITEMS({TAR_CHAR_DEVICE, "null", NULL, NULL}), -EPERM},
		{"block device", ITEMS({TAR_BLOCK_DEVICE, "sda", NULL, NULL}), -EPERM},
		{"file for the top", ITEMS({TAR_FILE, ".", NULL, "x"}), -EINVAL},
		{"link for the top", ITEMS({TAR_SYMLINK, "./", "../victim", NULL}), -EINVAL},
		{"file over a directory",
			ITEMS({TAR_DIRECTORY, "d", NULL, NULL}, {TAR_FILE, "d", NULL, "x"}),
			-EISDIR},
		{"directory over a file",
			ITEMS({TAR_FILE, "f", NULL, "x"}, {TAR_DIRECTORY, "f", NULL, NULL}),
			-ENOTDIR},
	};

	must(mkdirat(dir, "victim", 0700) == 0);
	must(fs_write_atomic(dir, "victim/file", STR("as it was"), 0600, false, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
		struct files_error e;
		size_t n = 0;
		int got;

		while (n < 3 && table[i].items[n].path)
			n++;
		archive(table[i].items, n, &out);
		fresh("to");
		got = unpack("to", buf_str(&out), NULL, &e);
		if (got != table[i].want)
			tap_fail("%s: got %d, want %d", table[i].what, got, table[i].want);
		check_untouched(table[i].what);
	}
}

/* A name of a file that was there before could be written to by a room that may only read it. */
static void hard_links_stay_among_what_came(void)
{
	static const struct item items[] = {{TAR_FILE, "a", NULL, "x"},
		{TAR_HARDLINK, "b", "a", NULL}, {TAR_HARDLINK, "c", "kept/config", NULL}};
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
	struct files_error e;
	struct stat st;

	archive(items, 3, &out);
	fresh("to");
	must(mkdirat(dir, "to/kept", 0700) == 0);
	must(fs_write_atomic(dir, "to/kept/config", STR("as it was"), 0600, false, NULL) == 0);
	check_int(unpack("to", buf_str(&out), NULL, &e), -EPERM);
	must(fstatat(dir, "to/b", &st, 0) == 0);
	check_int((int)st.st_nlink, 2);
	must(fstatat(dir, "to/kept/config", &st, 0) == 0);
	check_int((int)st.st_nlink, 1);
	check_int(fstatat(dir, "to/c", &st, 0), -1);
}

static void setid_bits_are_dropped(void)
{
	static const struct item items[] = {
		{TAR_FILE, "f", NULL, "x", 06755}, {TAR_DIRECTORY, "d", NULL, NULL, 07755}};
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
	struct files_error e;
	struct stat st;

	archive(items, 2, &out);
	fresh("to");
	check_int(unpack("to", buf_str(&out), NULL, &e), 0);
	must(fstatat(dir, "to/f", &st, 0) == 0);
	check_int(st.st_mode & 07777, 0755);
	must(fstatat(dir, "to/d", &st, 0) == 0);
	check_int(st.st_mode & 07777, 01755);
}

/* Cut anywhere: nothing half done under a final name, nothing temporary. */
static void cut_off_archives(void)
{
	static const struct item items[] = {
		{TAR_FILE, "f", NULL, "the whole text"}, {TAR_FILE, "g", NULL, "another"}};
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);

	archive(items, 2, &out);
	for (size_t n = 0; n < buf_len(&out) - TAR_BLOCK; n += 100) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);
		struct files_error e;

		fresh("to");
		if (n < buf_len(&out) - 2 * TAR_BLOCK)
			check(unpack("to", str_prefix(buf_str(&out), n), NULL, &e) < 0);
		if (faccessat(dir, "to/f", F_OK, 0) == 0) {
			must(fd_read_file(dir, "to/f", &b, NULL) == 0);
			check_str(buf_str(&b), "the whole text");
		}
		check_untouched("cut off");
	}
}

static void one_file_alone(void)
{
	static const struct item file[] = {{TAR_FILE, "../../planted", NULL, "text"}};
	static const struct item two[] = {{TAR_FILE, "a", NULL, "1"}, {TAR_FILE, "b", NULL, "2"}};
	static const struct item directory[] = {{TAR_DIRECTORY, "a", NULL, NULL}};
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX), b = BUF_INIT(1000);
	struct files_error e;

	fresh("to");
	archive(file, 1, &out);
	check_int(unpack("to", buf_str(&out), "mine", &e), 0);
	must(fd_read_file(dir, "to/mine", &b, NULL) == 0);
	check_str(buf_str(&b), "text");
	buf_clear(&out);
	archive(two, 2, &out);
	check_int(unpack("to", buf_str(&out), "mine", &e), -EBADMSG);
	buf_clear(&out);
	archive(directory, 1, &out);
	check_int(unpack("to", buf_str(&out), "mine", &e), -EBADMSG);
	buf_clear(&out);
	archive(NULL, 0, &out);
	check_int(unpack("to", buf_str(&out), "mine", &e), -EBADMSG);
	check_untouched("single");
}

int main(void)
{
	seeded_begin();
	umask(022);
	tap_fast_dir(top);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0);
	run_test(round_trip);
	run_test(deep_trees);
	run_test(nothing_leads_out);
	run_test(hard_links_stay_among_what_came);
	run_test(setid_bits_are_dropped);
	run_test(cut_off_archives);
	run_test(one_file_alone);
	check_int(fs_remove_tree(AT_FDCWD, top), 0);
	return tap_done();
}
