/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading archives: each must give back what the other was given, in pieces of any
 * size, and the reader must refuse what is broken. */
#include "base/rand.h"
#include "files/tar.h"
#include "files/tar_format.h"
#include "seeded.h"
#include "tap.h"

#include <errno.h>

enum { MAX_SEEN = 64, OUT_MAX = 16 * 1024 * 1024 };

struct seen {
	struct tar_entry e;
	struct buf path, link, data;
	bool ended;
};

struct reading {
	struct seen v[MAX_SEEN];
	size_t n;
	size_t fail_at; /* entry that is refused, from 1 on */
};

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct reading *r = user;
	struct seen *s = &r->v[r->n];

	must(r->n < MAX_SEEN);
	if (++r->n == r->fail_at)
		return files_fail(e, EPERM, entry->path, "refused here");
	*s = (struct seen){.e = *entry,
		.path = BUF_INIT(TAR_MAX_NAME),
		.link = BUF_INIT(TAR_MAX_NAME),
		.data = BUF_INIT(OUT_MAX)};
	must(buf_add_str(&s->path, entry->path) == 0 && buf_add_str(&s->link, entry->link) == 0);
	return 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct reading *r = user;

	check(n > 0 && !r->v[r->n - 1].ended);
	must(buf_add(&r->v[r->n - 1].data, p, n) == 0);
	return 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	struct reading *r = user;

	check(!r->v[r->n - 1].ended);
	r->v[r->n - 1].ended = true;
	return 0;
}

static void reading_done(struct reading *r)
{
	for (size_t i = 0; i < r->n; i++) {
		buf_done(&r->v[i].path);
		buf_done(&r->v[i].link);
		buf_done(&r->v[i].data);
	}
	*r = (struct reading){0};
}

/* In pieces of at most `piece` bytes (0: of random sizes). */
static int read_back(struct reading *r, struct str archive, size_t piece, struct files_error *e)
{
	static const struct tar_reader_ops ops = {on_entry, on_data, on_entry_end};
	_cleanup_(tar_reader_freep) struct tar_reader *reader = tar_reader_new(&ops, r);
	int ret = 0;

	must(reader);
	*e = (struct files_error){0};
	while (ret == 0 && archive.n) {
		size_t n = piece ? piece : 1 + rand_below(2000);

		n = MIN(n, archive.n);
		ret = tar_reader_feed(reader, archive.p, n, e);
		archive = str_from_index(archive, n);
	}
	return ret < 0 ? ret : tar_reader_finish(reader, e);
}

/* An entry of anything. The texts are heap memory. */
static struct tar_entry random_entry(void)
{
	static const size_t lengths[] = {
		1, 2, 99, 100, 101, 154, 155, 156, 255, 256, 257, 600, 5000};
	struct tar_entry e = {.type = (enum tar_type)rand_below(5)};
	size_t n = lengths[rand_below(ARRAY_SIZE(lengths))];
	char *path = malloc(n), *link = malloc(n);

	must(path && link);
	for (size_t i = 0; i < n; i++) {
		path[i] = (char)(1 + rand_below(255));
		link[i] = (char)(1 + rand_below(255));
		if (path[i] == '/' || rand_below(20) == 0)
			path[i] = i == 0 || i + 1 == n ? 'x' : '/';
	}
	e.path = str_make(path, n);
	e.link = e.type == TAR_SYMLINK || e.type == TAR_HARDLINK ? str_make(link, n) : STR_NULL;
	if (!e.link.n)
		free(link);
	e.mode = rand_below(010000);
	e.uid = rand_below(2) ? rand_below(1000) : UINT32_MAX - rand_below(1000);
	e.gid = rand_below(2) ? 02000000 + rand_below(070000000) : rand_below(UINT32_MAX);
	e.mtime_sec = (int64_t)rand_below(UINT32_MAX) * (rand_below(3) ? 1 : -1);
	if (rand_below(8) == 0)
		e.mtime_sec *= 100000;
	e.mtime_nsec = rand_below(2) ? rand_below(1000000000) : 0;
	if (e.type == TAR_FILE)
		e.size = rand_below(2) ? rand_below(3) * 512 : rand_below(3000);
	return e;
}

static void check_same(const struct seen *got, const struct tar_entry *want, struct str data)
{
	check_int(got->e.type, want->type);
	check(str_eq(buf_str(&got->path), want->path));
	check(str_eq(buf_str(&got->link), want->link));
	check_int(got->e.mode, want->mode);
	check_int(got->e.uid, want->uid);
	check_int(got->e.gid, want->gid);
	check_int(got->e.size, want->size);
	check_int(got->e.mtime_sec, want->mtime_sec);
	check_int(got->e.mtime_nsec, want->mtime_nsec);
	check(str_eq(buf_str(&got->data), data));
	check(got->ended);
}

static void gives_back_what_was_written(void)
{
	static char bytes[4096];

	rand_bytes(bytes, sizeof(bytes));
	for (int round = 0; round < 300; round++) {
		static const size_t pieces[] = {1, 511, 512, 513, 0, 1 << 20};
		_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
		struct tar_entry want[8];
		static struct reading r;
		struct files_error e;
		size_t n = rand_below(ARRAY_SIZE(want) + 1);

		for (size_t i = 0; i < n; i++) {
			want[i] = random_entry();
			check_int(tar_write_entry(&out, &want[i]), 0);
			must(buf_add(&out, bytes, want[i].size) == 0);
			check_int(tar_write_padding(&out, want[i].size), 0);
		}
		check_int(tar_write_end(&out), 0);
		check_int(buf_len(&out) % TAR_BLOCK, 0);
		check_int(read_back(&r, buf_str(&out), pieces[round % 6], &e), 0);
		check_z(e.why, "");
		check_int(r.n, n);
		for (size_t i = 0; i < n; i++) {
			if (i < r.n)
				check_same(&r.v[i], &want[i], str_make(bytes, want[i].size));
			free((char *)(uintptr_t)want[i].path.p);
			if (want[i].link.n)
				free((char *)(uintptr_t)want[i].link.p);
		}
		reading_done(&r);
	}
}

/* Five GiB and five EiB, as headers alone. */
static void knows_large_sizes(void)
{
	static const uint64_t sizes[] = {
		5368709120ULL, 077777777777ULL, 0100000000000ULL, 5ULL << 60, INT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
		struct tar_entry want = {.path = STR("big"), .size = sizes[i]};
		static struct reading r;
		struct files_error e;

		check_int(tar_write_entry(&out, &want), 0);
		check_int(read_back(&r, buf_str(&out), 0, &e), -EBADMSG);
		check_z(e.why, "the archive is cut off");
		check_int(r.n, 1);
		check_int(r.v[0].e.size, sizes[i]);
		reading_done(&r);
	}
}

static void put_octal(char *at, size_t n, unsigned value)
{
	snprintf(at, n, "%0*o", (int)n - 1, value);
}

static struct tar_header plain(char type, const char *name, unsigned size)
{
	struct tar_header h = {.type = type};

	memcpy(h.name, name, MIN(strlen(name), sizeof(h.name)));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), size);
	put_octal(h.mtime, sizeof(h.mtime), 1);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	return h;
}

static void seal(struct tar_header *h)
{
	const unsigned char *at = (const unsigned char *)h;
	unsigned sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += at[i];
	put_octal(h->checksum, 7, sum);
}

/* One header, some blocks of text, the end. */
static int read_one(struct tar_header h, const char *text, struct reading *r, struct files_error *e)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);

	seal(&h);
	must(buf_add(&out, &h, sizeof(h)) == 0);
	must(buf_add(&out, text, strlen(text)) == 0);
	must(tar_write_padding(&out, strlen(text)) == 0);
	h = plain('0', "after", 0);
	seal(&h);
	must(buf_add(&out, &h, sizeof(h)) == 0);
	must(tar_write_end(&out) == 0);
	return read_back(r, buf_str(&out), 0, e);
}

static void takes_other_forms(void)
{
	static struct reading r;
	struct files_error e;
	struct tar_header h;

	h = plain('L', "././@LongLink", 5);
	check_int(read_one(h, "a/bc", &r, &e), 0);
	check_str(buf_str(&r.v[0].path), "a/bc");
	reading_done(&r);
	h = plain('x', "pax", 30);
	check_int(read_one(h, "30 mtime=-1.25\n15 path=p/q/r/s", &r, &e), -EBADMSG);
	reading_done(&r);
	h = plain('x', "pax", 28);
	check_int(read_one(h, "15 mtime=-1.25\n13 path=a\nbc\n", &r, &e), 0);
	check_str(buf_str(&r.v[0].path), "a\nbc");
	check_int(r.v[0].e.mtime_sec, -2);
	check_int(r.v[0].e.mtime_nsec, 750000000);
	reading_done(&r);
	/* Of all entries alike only what does not matter. */
	h = plain('g', "pax", 25);
	check_int(read_one(h, "12 path=abc\n13 comment=x\n", &r, &e), 0);
	check_str(buf_str(&r.v[0].path), "after");
	reading_done(&r);
	/* Before there was a magic, and types. */
	h = plain('\0', "old/", 0);
	memset(h.magic, 0, sizeof(h.magic));
	memset(h.version, 0, sizeof(h.version));
	check_int(read_one(h, "", &r, &e), 0);
	check_int(r.v[0].e.type, TAR_DIRECTORY);
	reading_done(&r);
	/* Base 256: a size, and a time before 1970. */
	h = plain('0', "n", 0);
	memset(h.size, 0, sizeof(h.size));
	h.size[0] = (char)0x80;
	h.size[11] = 3;
	memset(h.mtime, 0xff, sizeof(h.mtime));
	check_int(read_one(h, "abc", &r, &e), 0);
	check_int(r.v[0].e.size, 3);
	check_int(r.v[0].e.mtime_sec, -1);
	check_str(buf_str(&r.v[0].data), "abc");
	reading_done(&r);
}

static void refuses_what_is_broken(void)
{
	static const struct {
		char type;
		const char *text;
		int want;
	} table[] = {
		{'S', "", -EOPNOTSUPP},
		{'M', "", -EOPNOTSUPP},
		{'D', "", -EOPNOTSUPP},
		{'\n', "", -EOPNOTSUPP},
		{'1', "", -EBADMSG},
		{'2', "", -EBADMSG},
		{'x', "22 GNU.sparse.major=1\n", -EOPNOTSUPP},
		{'g', "22 GNU.sparse.major=1\n", -EOPNOTSUPP},
		{'x', "x", -EBADMSG},
		{'x', "0 path=a\n", -EBADMSG},
		{'x', "9 path=a\n", 0},
		{'x', "11 path=aa\n", 0},
		{'x', "11 path=a\n", -EBADMSG},
		{'x', "8 path=\n", -EBADMSG},
		{'x', "99999999999999999999 path=a\n", -EBADMSG},
		{'x', "-9 path=a\n", -EBADMSG},
		{'x', " 9 path=a\n", -EBADMSG},
		{'x', "6 path\n", -EBADMSG},
		{'x', "6 =abc\n", -EBADMSG},
		{'x', "11 size=-1\n", -EBADMSG},
		{'x', "9 size=z\n", -EBADMSG},
		{'x', "28 size=9223372036854775808\n", -EBADMSG},
		{'x', "14 mtime=1e3\n", -EBADMSG},
		{'x', "15 mtime=1.2.3\n", -EBADMSG},
		{'x', "10 mtime=\n", -EBADMSG},
		{'x', "18 uid=4294967296\n", -EBADMSG},
		{'K', "", -EBADMSG},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		static struct reading r;
		struct files_error e;
		struct tar_header h = plain(table[i].type, "x", (unsigned)strlen(table[i].text));
		int got = read_one(h, table[i].text, &r, &e);

		if (got != table[i].want)
			tap_fail("line %zu (%s): got %d, want %d", i, table[i].text, got,
				table[i].want);
		check_int(e.sys_errno, -table[i].want);
		reading_done(&r);
	}
}

static void refuses_broken_headers(void)
{
	static struct reading r;
	struct files_error e;
	struct tar_header h = plain('0', "x", 0);
	char block[TAR_BLOCK];

	memset(h.size, '9', sizeof(h.size));
	check_int(read_one(h, "", &r, &e), -EBADMSG);
	h = plain('0', "x", 0);
	h.size[0] = (char)0x80; /* a number of more than 64 bits */
	memset(h.size + 1, 0x7f, 11);
	check_int(read_one(h, "", &r, &e), -EBADMSG);
	h = plain('0', "x", 0);
	memset(h.uid, 0xff, sizeof(h.uid)); /* -1 */
	check_int(read_one(h, "", &r, &e), -EBADMSG);
	h = plain('0', "", 0);
	check_int(read_one(h, "", &r, &e), -EBADMSG);
	h = plain('x', "x", TAR_MAX_EXTENDED + 1);
	check_int(read_one(h, "", &r, &e), -ENAMETOOLONG);
	/* A wrong sum. */
	h = plain('0', "x", 0);
	seal(&h);
	h.name[0] = 'y';
	memcpy(block, &h, sizeof(block));
	check_int(read_back(&r, str_make(block, sizeof(block)), 0, &e), -EBADMSG);
	check_int(read_back(&r, STR("no archive at all, just text"), 0, &e), -EBADMSG);
	check_int(read_back(&r, STR_NULL, 0, &e), -EBADMSG);
	check_int(r.n, 0);
	reading_done(&r);
}

static void ends_where_it_is_told(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(OUT_MAX);
	static struct reading r;
	struct files_error e;

	for (int i = 0; i < 3; i++)
		must(tar_write_entry(&out, &(struct tar_entry){.path = STR("a")}) == 0);
	must(tar_write_end(&out) == 0 && buf_add_str(&out, STR("anything")) == 0);
	check_int(read_back(&r, buf_str(&out), 7, &e), 0);
	check_int(r.n, 3);
	reading_done(&r);
	r.fail_at = 2;
	check_int(read_back(&r, buf_str(&out), 7, &e), -EPERM);
	check_z(e.why, "refused here");
	check_z(e.entry, "a");
	r.n--;
	reading_done(&r);
}

int main(void)
{
	seeded_begin();
	run_test(gives_back_what_was_written);
	run_test(knows_large_sizes);
	run_test(takes_other_forms);
	run_test(refuses_what_is_broken);
	run_test(refuses_broken_headers);
	run_test(ends_where_it_is_told);
	return tap_done();
}
