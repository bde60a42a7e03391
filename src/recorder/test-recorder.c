/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/test-recorder.h"
#include "base/fd.h"
#include "files/tar.h"
#include "record/compact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

static void test_changes(void)
{
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "d", 0755) == 0);
	look(&f, 0);
	check_entries(&f, 0, "fs.mkdir /w/d\n");
	look(&f, 1);
	check_entries(&f, 1, "");
	put(f.ws, "d/a", "one");
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/d/a\n");
	must(fchmodat(f.ws, "d/a", 0600, 0) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.chmod /w/d/a\n");
	must(unlinkat(f.ws, "d/a", 0) == 0 && unlinkat(f.ws, "d", AT_REMOVEDIR) == 0);
	must(symlinkat("/", f.ws, "d") == 0);
	look(&f, 4);
	/* Not what is below, which a link might lead to. */
	check_entries(&f, 4, "fs.delete /w/d\nfs.delete /w/d\nfs.symlink /w/d\n");
	teardown(&f);
}

/* The directory itself is not on record, but a new mode of it is. */
static void test_top(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	must(fchmod(f.ws, 0711) == 0);
	look(&f, 1);
	check_entries(&f, 1, "fs.chmod /w\n");
	look(&f, 2);
	check_entries(&f, 2, "");
	record_mode(&f, STATE_FS_CHMOD, "/w", "", 0700);
	must(fchmod(f.ws, 0700) == 0);
	look(&f, 3);
	check_entries(&f, 3, "");
	teardown(&f);
}

/* A room with a copy of the files: they are looked at before it and after it. */
static void test_copied(void)
{
	struct fixture f;

	setup(&f);
	f.r.trees[0].copied = true;
	put(f.ws, "a", "one");
	look(&f, 0);
	check_entries(&f, 0, "fs.write /w/a\n");
	/* In the room's copy. */
	record(&f, STATE_FS_WRITE, "/w/new", "text");
	put(f.ws, "a", "of the person's");
	look(&f, 1);
	check_entries(&f, 1, "");
	look(&f, 2);
	check_entries(&f, 2, "");
	put(f.ws, "new", "text");
	put(f.ws, "other", "");
	must(unlinkat(f.ws, "a", 0) == 0);
	f.r.last = true;
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/other\nfs.delete /w/a\n");
	teardown(&f);
}

/* Wait until the times of what was changed tell that it was not changed again. */
static void wait_for_times(void)
{
	usleep(60 * 1000);
}

/* The names in a directory that seems to be as it was are not read again. */
/* What is written through a mapping is found, whether or not that changes a time. */
static void test_mapped(void)
{
	_cleanup_fd_ int fd = -1;
	struct fixture f;
	char *p;

	setup(&f);
	put(f.ws, "a", "one");
	put(f.ws, "b", "one");
	usleep(60 * 1000);
	look(&f, 0);
	fd = openat(f.ws, "a", O_RDWR | O_CLOEXEC);
	must(fd >= 0);
	p = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED && p[0] == 'o');
	close(TAKE_FD(fd));
	p[0] = 'O';
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/a\n");
	usleep(60 * 1000);
	look(&f, 2);
	p[1] = 'N';
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/a\n");
	p[2] = 'E';
	must(munmap(p, 3) == 0);
	look(&f, 4);
	check_entries(&f, 4, "fs.write /w/a\n");
	look(&f, 5);
	check_entries(&f, 5, "");
	teardown(&f);
}

static void test_names(void)
{
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "d", 0755) == 0);
	put(f.ws, "d/a", "one");
	wait_for_times();
	look(&f, 0);
	must(f.r.trees[0].names.unchanged_nsec != 0);
	check_entries(&f, 0, "fs.mkdir /w/d\nfs.write /w/d/a\n");
	put(f.ws, "d/a", "1");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/d/a\n");
	put(f.ws, "d/c", "three");
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/d/c\n");
	wait_for_times();
	look(&f, 3);
	must(renameat(f.ws, "d/a", f.ws, "d/z") == 0);
	look(&f, 4);
	check_entries(&f, 4, "fs.write /w/d/z\nfs.delete /w/d/a\n");
	must(unlinkat(f.ws, "d/c", 0) == 0);
	wait_for_times();
	look(&f, 5);
	check_entries(&f, 5, "fs.delete /w/d/c\n");
	must(renameat(f.ws, "d", f.ws, "old") == 0 && mkdirat(f.ws, "d", 0755) == 0);
	look(&f, 6);
	check_entries(&f, 6, "fs.mkdir /w/old\nfs.write /w/old/z\nfs.delete /w/d/z\n");
	wait_for_times();
	look(&f, 7);
	must(unlinkat(f.ws, "d", AT_REMOVEDIR) == 0);
	put(f.ws, "d", "a file");
	look(&f, 8);
	check_entries(&f, 8, "fs.delete /w/d\nfs.write /w/d\n");
	wait_for_times();
	look(&f, 9);
	look(&f, 10);
	check_entries(&f, 3, "");
	check_entries(&f, 7, "");
	check_entries(&f, 9, "");
	check_entries(&f, 10, "");
	teardown(&f);
}

/* In the same tick, of the same length: no time tells. */
static void test_at_once(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	for (uint32_t i = 1; i <= 20; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%04u", i);
		put(f.ws, "a", text);
		look(&f, i);
		check_entries(&f, i, "fs.write /w/a\n");
	}
	teardown(&f);
}

#define REF_OF_SAME "sha256-0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"

/* What somebody outside did and put on record is not found again; what came after is. */
static void test_from_outside(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	put(f.ws, "a", "same");
	record(&f, STATE_FS_WRITE, "/w/a", "same");
	put(f.ws, "b", "later");
	record(&f, STATE_FS_WRITE, "/w/b", "sooner");
	record(&f, STATE_FS_WRITE, "/w/c", "gone again");
	record(&f, STATE_FS_WRITE, "/tmp/c", "somewhere else");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/b\nfs.delete /w/c\n");
	put(f.ws, "asset", "same");
	record(&f, STATE_ASSETS_UPLOAD, "/w/asset", REF_OF_SAME);
	look(&f, 2);
	check_entries(&f, 2, "");
	must(unlinkat(f.ws, "a", 0) == 0);
	record(&f, STATE_FS_DELETE, "/w/a", "");
	look(&f, 3);
	check_entries(&f, 3, "");
	teardown(&f);
}

/* The same of what changes only a part. */
static void test_parts_from_outside(void)
{
	struct fixture f;

	setup(&f);
	put(f.ws, "a", "one");
	put(f.ws, "b", "one");
	look(&f, 0);
	put(f.ws, "a", "onetwothree");
	record(&f, STATE_FS_APPEND, "/w/a", "two");
	record(&f, STATE_FS_APPEND, "/w/a", "three");
	put(f.ws, "b", "twotwo");
	record(&f, STATE_FS_APPEND, "/w/b", "two");
	put(f.ws, "c", "new");
	record(&f, STATE_FS_APPEND, "/w//./c", "new");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/b\n");
	must(fchmodat(f.ws, "a", 0600, 0) == 0 && fchmodat(f.ws, "c", 0700, 0) == 0);
	record_mode(&f, STATE_FS_CHMOD, "/w/a", "", 0600);
	look(&f, 2);
	check_entries(&f, 2, "fs.chmod /w/c\n");
	/* Twice without a mode, with the directories on the way. */
	must(mkdirat(f.ws, "d", 0700) == 0 && mkdirat(f.ws, "d/e", 0755) == 0);
	put(f.ws, "d/e/f", "two");
	record(&f, STATE_FS_WRITE, "/w/d/e/f", "one");
	record(&f, STATE_FS_WRITE, "/w/d/e/f", "two");
	record_mode(&f, STATE_FS_MKDIR, "/w/d", "", 0711);
	record(&f, STATE_FS_MKDIR, "/w", "");
	look(&f, 3);
	check_entries(&f, 3, "");
	teardown(&f);
}

static void test_moves_from_outside(void)
{
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "d", 0755) == 0);
	put(f.ws, "d/a", "one");
	put(f.ws, "d/b", "one");
	put(f.ws, "x", "x");
	look(&f, 0);
	must(renameat(f.ws, "d", f.ws, "e") == 0 && renameat(f.ws, "x", f.ws, "e/a") == 0);
	record(&f, STATE_FS_RENAME, "/w/d", "/w/e");
	record(&f, STATE_FS_RENAME, "/w/x", "/w/e/a");
	put(f.ws, "e/b", "two");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/e/b\n");
	must(unlinkat(f.ws, "e/a", 0) == 0 && unlinkat(f.ws, "e/b", 0) == 0);
	must(unlinkat(f.ws, "e", AT_REMOVEDIR) == 0);
	record(&f, STATE_FS_DELETE, "/w/e", "");
	look(&f, 2);
	check_entries(&f, 2, "");
	/* It leads elsewhere, and stays a link. */
	put(f.ws, "y", "one");
	must(symlinkat("y", f.ws, "l") == 0);
	look(&f, 3);
	put(f.ws, "y", "two");
	record(&f, STATE_FS_WRITE, "/w/l", "two");
	look(&f, 4);
	check_entries(&f, 4, "fs.write /w/y\n");
	teardown(&f);
}

static void add_to_tar(struct buf *tar, enum tar_type type, const char *path, const char *link,
	uint32_t mode, const char *text)
{
	const struct tar_entry e = {.type = type,
		.path = str_from(path),
		.link = str_from(link),
		.mode = mode,
		.size = strlen(text)};

	must(tar_write_entry(tar, &e) == 0 && buf_add_str(tar, str_from(text)) == 0 &&
		tar_write_padding(tar, e.size) == 0);
}

/* What a worker that lies, or a link made meanwhile, can have put on record. */
static void test_lies_from_outside(void)
{
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "d", 0755) == 0 && mkdirat(f.ws, "d/x", 0755) == 0);
	put(f.ws, "d/x/a", "one");
	must(symlinkat("d", f.ws, "l") == 0);
	look(&f, 0);
	record(&f, STATE_FS_RENAME, "/w/d", "/w/d/x/y");
	record(&f, STATE_FS_RENAME, "/w/d/x", "/w/d");
	record(&f, STATE_FS_RENAME, "/w/d", "/");
	record(&f, STATE_FS_DELETE, "/", "");
	record(&f, STATE_FS_DELETE, "/w", "");
	look(&f, 1);
	/* A link stays one, and what a command has made is found although its mode was set. */
	record(&f, STATE_FS_MKDIR, "/w/l", "");
	must(mkdirat(f.ws, "new", 0700) == 0);
	record_mode(&f, STATE_FS_CHMOD, "/w/new", "", 0700);
	look(&f, 2);
	check_entries(&f, 2, "fs.mkdir /w/new\n");
	/* What was appended counts once. */
	put(f.ws, "b", "one");
	look(&f, 3);
	record(&f, STATE_FS_APPEND, "/w/b", "three");
	put(f.ws, "b", "two");
	look(&f, 4);
	check_entries(&f, 4, "fs.write /w/b\n");
	put(f.ws, "b", "twothree");
	look(&f, 5);
	check_entries(&f, 5, "fs.write /w/b\n");
	teardown(&f);
}

static void test_unpacked_from_outside(void)
{
	_cleanup_(buf_donep) struct buf tar = BUF_INIT(1 << 20);
	struct blob_writer w = BLOB_WRITER_INIT;
	char ref[STATE_REF_BYTES + 1];
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "old", 0755) == 0);
	look(&f, 0);
	add_to_tar(&tar, TAR_DIRECTORY, ".", "", 0700, "");
	add_to_tar(&tar, TAR_DIRECTORY, "./old", "", 0711, "");
	add_to_tar(&tar, TAR_FILE, "./old/a", "", 0640, "one");
	add_to_tar(&tar, TAR_FILE, "b", "", 0600, "one");
	add_to_tar(&tar, TAR_HARDLINK, "new/c", "b", 0600, "");
	add_to_tar(&tar, TAR_SYMLINK, "l", "b", 0777, "");
	add_to_tar(&tar, TAR_FILE, "../out", "", 0600, "one");
	must(tar_write_end(&tar) == 0);
	must(blob_begin(&w, f.r.contents, NULL) == 0 && blob_add(&w, buf_str(&tar), NULL) == 0 &&
		blob_finish(&w, false, ref, NULL) == 0);
	record(&f, STATE_FS_UNPACK, "/w", ref);
	put(f.ws, "old/a", "one");
	put(f.ws, "b", "one");
	must(fchmodat(f.ws, "old/a", 0640, 0) == 0 && fchmodat(f.ws, "b", 0600, 0) == 0);
	must(mkdirat(f.ws, "new", 0755) == 0 && linkat(f.ws, "b", f.ws, "new/c", 0) == 0);
	must(symlinkat("b", f.ws, "l") == 0);
	put(f.ws, "d", "by the command");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/d\n");
	/* What is cut off is found. */
	must(blob_begin(&w, f.r.contents, NULL) == 0);
	must(blob_add(&w, str_prefix(buf_str(&tar), 2000), NULL) == 0);
	must(blob_finish(&w, false, ref, NULL) == 0);
	record(&f, STATE_FS_UNPACK, "/w", ref);
	put(f.ws, "e", "by the command");
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/e\n");
	teardown(&f);
}

/* The root's own layer instead of the mount. */
static void setup_layer(struct fixture *f)
{
	setup(f);
	free(f->r.trees[0].path);
	f->r.trees[0].path = strdup("");
	f->r.trees[0].layer = true;
}

/* The root's own layer has what hides something below. */
static void test_layer_from_outside(void)
{
	struct fixture f;

	setup_layer(&f);
	look(&f, 0);
	must(mkdirat(f.ws, "opt", 0755) == 0 && mkdirat(f.ws, "usr", 0755) == 0);
	put(f.ws, "opt/a", "one");
	put(f.ws, "opt/b", "below");
	put(f.ws, "opt/c", "all");
	record(&f, STATE_FS_WRITE, "/opt/a", "one");
	record(&f, STATE_FS_APPEND, "/opt/b", "low");
	record(&f, STATE_FS_APPEND, "/opt/c", "all");
	record(&f, STATE_FS_DELETE, "/usr/d", "");
	record(&f, STATE_FS_WRITE, "/tmp/a", "one");
	record(&f, STATE_FS_MKDIR, "/usr/share", "");
	/* If this is not permitted, nothing is there. */
	(void)!mknodat(f.ws, "usr/d", S_IFCHR, 0);
	look(&f, 1);
	check_entries(&f, 1, "fs.write /opt/b\n");
	must(unlinkat(f.ws, "opt/a", 0) == 0);
	look(&f, 2);
	check_entries(&f, 2, "fs.delete /opt/a\n");
	teardown(&f);
}

static void make_opaque(int at, const char *name)
{
	_cleanup_fd_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(fd >= 0 && fsetxattr(fd, FS_OPAQUE, "y", 1, 0) == 0);
}

/* A directory there that was removed and made again hides what lies below it. */
static void test_layer_made_again(void)
{
	struct fixture f;

	setup_layer(&f);
	look(&f, 0);
	must(mkdirat(f.ws, "d", 0755) == 0);
	make_opaque(f.ws, "d");
	put(f.ws, "d/a", "one");
	look(&f, 1);
	check_entries(&f, 1, "fs.delete /d\nfs.mkdir /d\nfs.write /d/a\n");
	put(f.ws, "d/a", "two");
	look(&f, 2);
	check_entries(&f, 2, "fs.write /d/a\n");
	/* While it is known as one that hides nothing. */
	must(mkdirat(f.ws, "e", 0755) == 0 && mkdirat(f.ws, "e/sub", 0755) == 0);
	put(f.ws, "e/sub/same", "one");
	look(&f, 3);
	make_opaque(f.ws, "e");
	look(&f, 4);
	check_entries(&f, 4, "fs.delete /e\nfs.mkdir /e\nfs.mkdir /e/sub\nfs.write /e/sub/same\n");
	look(&f, 5);
	check_entries(&f, 5, "");
	/* From outside: it is on record already. */
	record(&f, STATE_FS_DELETE, "/g", "");
	record(&f, STATE_FS_MKDIR, "/g", "");
	must(mkdirat(f.ws, "g", 0755) == 0);
	make_opaque(f.ws, "g");
	look(&f, 6);
	check_entries(&f, 6, "");
	/* Nothing of a mount is hidden. */
	f.r.trees[0].layer = false;
	must(mkdirat(f.ws, "h", 0755) == 0);
	make_opaque(f.ws, "h");
	look(&f, 7);
	check_entries(&f, 7, "fs.mkdir /h\n");
	teardown(&f);
}

static void compact(struct fixture *f)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	struct compaction done;

	must(oplog_open(&l, f->r.logs, f->id, true, NULL) == 0);
	must(oplog_compact(&l, true, &done, NULL) == 0);
}

/* What is known stays known when the compacted log takes the place of the one that was read. */
static void test_compacted(void)
{
	struct fixture f;

	setup(&f);
	put(f.ws, "a", "one");
	put(f.ws, "b", "one");
	look(&f, 0);
	put(f.ws, "a", "two");
	look(&f, 1);
	compact(&f);
	look(&f, 2);
	check_entries(&f, 2, "");
	/* with what it has not yet been told of */
	put(f.ws, "c", "outside");
	record(&f, STATE_FS_WRITE, "/w/c", "before");
	record(&f, STATE_FS_WRITE, "/w/c", "outside");
	compact(&f);
	put(f.ws, "b", "three");
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/b\n");
	teardown(&f);
}

static void test_events(void)
{
	struct fixture f;

	setup(&f);
	check_int(recorder_take(
			  &f.r, STATE_EXEC_START, STR("{\"exec\":1}"), -1, RECORDER_NO_LOOK, NULL),
		0);
	f.r.exec = 1;
	check_int(
		recorder_take(&f.r, STATE_EXEC_END, STR("\"exec\":1"), -1, RECORDER_LOOK, NULL), 0);
	check_entries(&f, 0, "exec.start \nexec.end \n");
	teardown(&f);
}

int main(void)
{
	testing_begin();
	run_test(test_changes);
	run_test(test_top);
	run_test(test_copied);
	run_test(test_mapped);
	run_test(test_names);
	run_test(test_at_once);
	run_test(test_from_outside);
	run_test(test_parts_from_outside);
	run_test(test_moves_from_outside);
	run_test(test_lies_from_outside);
	run_test(test_unpacked_from_outside);
	run_test(test_layer_from_outside);
	run_test(test_layer_made_again);
	run_test(test_compacted);
	run_test(test_events);
	return testing_end();
}
