/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that a room may send, as they come out for whoever unpacks them. */
#include "files/tar_clean.h"
#include "tap.h"

#include <errno.h>

static int gather(void *user, const char *p, size_t n, struct files_error *e)
{
	return buf_add(user, p, n);
}

/* One entry of an archive; the data of files is their path. */
struct sent {
	enum tar_type type;
	const char *path, *link;
	uint32_t mode;
};

static void write_archive(const struct sent *sent, struct buf *ret)
{
	for (; sent->path; sent++) {
		struct tar_entry e = {.type = sent->type,
			.path = str_from(sent->path),
			.link = str_from(sent->link ? sent->link : ""),
			.mode = sent->mode,
			.uid = 1000,
			.gid = 1000};

		if (sent->type == TAR_FILE)
			e.size = e.path.n;
		must(tar_write_entry(ret, &e) == 0);
		if (sent->type == TAR_FILE)
			must(buf_add_str(ret, e.path) == 0 && tar_write_padding(ret, e.size) == 0);
	}
	must(tar_write_end(ret) == 0);
}

/* Fed in pieces of that size. */
static int clean(const char *root, const struct sent *sent, size_t piece, struct buf *ret)
{
	_cleanup_(tar_clean_freep) struct tar_clean *c = tar_clean_new(str_from(root), gather, ret);
	struct buf archive = BUF_INIT(1 << 20);
	struct files_error e = {0};
	int r = 0;

	must(c);
	write_archive(sent, &archive);
	while (r == 0 && buf_len(&archive) > 0) {
		size_t n = MIN(piece, buf_len(&archive));

		r = tar_clean_feed(c, buf_data(&archive), n, &e);
		buf_consume(&archive, n);
	}
	if (r == 0)
		r = tar_clean_finish(c, &e);
	buf_done(&archive);
	return r;
}

static int list_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	static const char types[] = "-dlhpcb";

	return buf_printf(user, "%c%.*s%s%.*s %o %u:%u\n", types[entry->type], STR_FMT(entry->path),
		entry->link.n ? ">" : "", STR_FMT(entry->link), entry->mode, (unsigned)entry->uid,
		(unsigned)entry->gid);
}

static int list_data(void *user, const char *p, size_t n, struct files_error *e)
{
	return buf_printf(user, "=%.*s\n", (int)n, p);
}

static int list_end(void *user, struct files_error *e)
{
	return 0;
}

static void comes_out(const char *root, const struct sent *sent, const char *want)
{
	static const struct tar_reader_ops ops = {
		.entry = list_entry, .data = list_data, .entry_end = list_end};
	static const size_t pieces[] = {1, 511, 1 << 20};
	struct files_error e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct buf out = BUF_INIT(1 << 20), text = BUF_INIT(1 << 16);
		_cleanup_(tar_reader_freep) struct tar_reader *r = tar_reader_new(&ops, &text);

		check_int(clean(root, sent, pieces[i], &out), 0);
		must(r && tar_reader_feed(r, buf_data(&out), buf_len(&out), &e) == 0);
		check_int(tar_reader_finish(r, &e), 0);
		check_z(buf_cstr(&text), want);
		buf_done(&out);
		buf_done(&text);
	}
}

static void trees_pass(void)
{
	static const struct sent tree[] = {{TAR_DIRECTORY, "d", NULL, 04755},
		{TAR_FILE, "d/a", NULL, 06755}, {TAR_DIRECTORY, "d/b", NULL, 01777},
		{TAR_FILE, "d/b/x", NULL, 0600}, {TAR_HARDLINK, "d/b/y", "d/a", 0644},
		{TAR_FILE, "d/b.c", NULL, 0644}, {TAR_SYMLINK, "d/l", "/etc/../x", 0777},
		{TAR_FIFO, "d/p", NULL, 02644}, {0}};
	static const struct sent contents[] = {{TAR_DIRECTORY, ".", NULL, 0755},
		{TAR_FILE, "./a", NULL, 0644}, {TAR_HARDLINK, "./b", "./a", 0644}, {0}};
	static const struct sent one[] = {{TAR_FILE, "f", NULL, 04755}, {0}};

	comes_out("d", tree,
		"dd 755 0:0\n-d/a 755 0:0\n=d/a\ndd/b 1777 0:0\n-d/b/x 600 0:0\n=d/b/x\n"
		"hd/b/y>d/a 644 0:0\n-d/b.c 644 0:0\n=d/b.c\nld/l>/etc/../x 777 0:0\n"
		"pd/p 644 0:0\n");
	comes_out(".", contents, "d. 755 0:0\n-./a 644 0:0\n=./a\nh./b>./a 644 0:0\n");
	comes_out("f", one, "-f 755 0:0\n=f\n");
}

static void is_refused(const char *root, const struct sent *sent)
{
	struct buf out = BUF_INIT(1 << 20);

	check_int(clean(root, sent, 512, &out), -EBADMSG);
	buf_done(&out);
}

static void others_do_not(void)
{
#define D(p)                                                                                       \
	{                                                                                          \
		TAR_DIRECTORY, p, NULL, 0755                                                       \
	}
#define F(p)                                                                                       \
	{                                                                                          \
		TAR_FILE, p, NULL, 0644                                                            \
	}
#define L(p, to)                                                                                   \
	{                                                                                          \
		TAR_SYMLINK, p, to, 0777                                                           \
	}
#define H(p, to)                                                                                   \
	{                                                                                          \
		TAR_HARDLINK, p, to, 0644                                                          \
	}
	static const struct sent cases[][6] = {
		{D("d"), F("d/../../x")},
		{D("d"), F("/d/x")},
		{D("d"), F("/etc/passwd")},
		{D("d"), F("e")},
		{D("other")},
		{D("."), F("./x")},
		{F("d/x")},
		/* Through a link, in any order and by any spelling. */
		{D("d"), L("d/l", "/root/.ssh"), F("d/l/x")},
		{D("d"), L("d/l", "/root/.ssh"), D("d/l"), F("d/l/x")},
		{D("d"), L("d/l", "/root/.ssh"), F("d/m"), F("d/l/x")},
		{D("d"), L("d/l", "/root/.ssh"), F("d/./l//x")},
		{D("d"), L("d/l", "/etc"), H("d/m", "d/l/shadow")},
		{D("d"), L("d/l", "/etc/shadow"), H("d/m", "d/l")},
		{D("d"), H("d/m", "/etc/shadow")},
		{D("d"), H("d/m", "d/../../etc/shadow")},
		{D("d"), H("d/m", "other")},
		{L("d", "/root"), F("d/x")},
		/* Twice, or not in a directory. */
		{D("d"), F("d/x"), F("d/x")},
		{D("d"), D("d")},
		{D("d"), F("d/x"), F("d/x/y")},
		{D("d"), F("d/a/b")},
		{D("d"), {TAR_CHAR_DEVICE, "d/null", NULL, 0666}},
		{D("d"), {TAR_BLOCK_DEVICE, "d/sda", NULL, 0666}},
	};
	static const struct sent file_for_contents[] = {F("."), {0}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_refused("d", cases[i]);
	is_refused(".", file_for_contents);
	is_refused(".", cases[0]);
}

int main(void)
{
	run_test(trees_pass);
	run_test(others_do_not);
	return tap_done();
}
