/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each entry has a ustar header, and before it, if needed, a pax extended
 * header ('x') with only those values that ustar cannot hold: long names, sizes from 8 GiB on, ids
 * above 2097151, times with a fraction, before 1970 or after 2242. So plain trees are plain ustar,
 * and a reader that ignores extended headers still sees a sane archive. Numbers in the ustar header
 * are cut off if an extended value replaces them. */
#include "base/utf8.h"
#include "files/tar.h"
#include "files/tar_format.h"

#include <stdio.h>

enum {
	MAX_OCTAL_ID = 07777777,
	NSEC_PER_SEC = 1000000000,
};
#define MAX_OCTAL_11 077777777777ULL

static void put_octal(char *at, size_t size, uint64_t value)
{
	at[--size] = '\0';
	while (size > 0) {
		at[--size] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

static void put_text(char *at, size_t size, struct str s)
{
	s = str_prefix(s, size);
	if (s.n)
		memcpy(at, s.p, s.n);
}

/* The sum of all bytes, with the checksum itself as spaces. */
static void put_checksum(struct tar_header *h)
{
	const unsigned char *at = (const unsigned char *)h;
	unsigned sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += at[i];
	put_octal(h->checksum, 7, sum); /* six digits, NUL, space */
}

/* Splits a name at a slash so that it fits the header's two fields. */
static bool split(struct str path, struct str *ret_prefix, struct str *ret_name)
{
	const struct tar_header *h = NULL;

	*ret_prefix = STR_NULL;
	*ret_name = path;
	if (path.n <= sizeof(h->name))
		return true;
	for (size_t at = path.n - 1; at > 0; at--) {
		if (path.p[at] != '/' || at > sizeof(h->prefix))
			continue;
		*ret_prefix = str_prefix(path, at);
		*ret_name = str_from_index(path, at + 1);
		return ret_name->n > 0 && ret_name->n <= sizeof(h->name);
	}
	return false;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
static int put_record(struct buf *b, const char *key, struct str value)
{
	size_t rest = strlen(key) + value.n + 3, length = rest + 1;
	char digits[24];
	int r;

	for (;;) {
		size_t n = (size_t)snprintf(digits, sizeof(digits), "%zu", length);

		if (n + rest == length)
			break;
		length = n + rest;
	}
	r = buf_printf(b, "%s %s=", digits, key);
	if (r == 0)
		r = buf_add_str(b, value);
	return r < 0 ? r : buf_add_char(b, '\n');
}

static int put_number(struct buf *b, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put_record(b, key, str_from(text));
}

/* Seconds with a fraction. In the text both parts count down before 1970: "-1.25" is second -2 plus
 * 0.75 s here. */
static int put_time(struct buf *b, int64_t sec, uint32_t nsec)
{
	bool negative = sec < 0;
	uint64_t whole = negative ? 0 - (uint64_t)sec : (uint64_t)sec;
	char text[40];
	size_t n;

	if (negative && nsec) {
		whole--;
		nsec = NSEC_PER_SEC - nsec;
	}
	n = (size_t)snprintf(text, sizeof(text), "%s%llu.%09u", negative ? "-" : "",
		(unsigned long long)whole, nsec);
	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	return put_record(b, "mtime", str_make(text, n));
}

static int put_records(struct buf *b, const struct tar_entry *e, bool name_fits)
{
	bool long_link = e->link.n > sizeof(((struct tar_header *)0)->linkname);
	int r = 0;

	/* Values are UTF-8 unless hdrcharset says otherwise. */
	if ((!name_fits && !utf8_is_valid(e->path)) || (long_link && !utf8_is_valid(e->link)))
		r = put_record(b, "hdrcharset", STR("BINARY"));
	if (r == 0 && !name_fits)
		r = put_record(b, "path", e->path);
	if (r == 0 && long_link)
		r = put_record(b, "linkpath", e->link);
	if (r == 0 && e->size > MAX_OCTAL_11)
		r = put_number(b, "size", e->size);
	if (r == 0 && e->uid > MAX_OCTAL_ID)
		r = put_number(b, "uid", e->uid);
	if (r == 0 && e->gid > MAX_OCTAL_ID)
		r = put_number(b, "gid", e->gid);
	if (r == 0 && (e->mtime_nsec || e->mtime_sec < 0 || (uint64_t)e->mtime_sec > MAX_OCTAL_11))
		r = put_time(b, e->mtime_sec, e->mtime_nsec);
	return r;
}

static int put_header(struct buf *out, struct tar_header *h)
{
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	put_checksum(h);
	return buf_add(out, h, sizeof(*h));
}

static int write_extended(struct buf *out, const struct tar_entry *e, struct str records)
{
	struct tar_header h = {.type = 'x'};
	int r;

	put_text(h.name, sizeof(h.name), STR("./PaxHeaders/entry"));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), records.n);
	put_octal(h.mtime, sizeof(h.mtime), e->mtime_sec < 0 ? 0 : (uint64_t)e->mtime_sec);
	r = put_header(out, &h);
	if (r == 0)
		r = buf_add_str(out, records);
	return r < 0 ? r : tar_write_padding(out, records.n);
}

int tar_write_entry(struct buf *out, const struct tar_entry *e)
{
	_cleanup_(buf_donep) struct buf records = BUF_INIT(TAR_MAX_EXTENDED);
	struct tar_header h = {.type = TAR_LETTERS[e->type]};
	struct str prefix, name;
	bool fits = split(e->path, &prefix, &name);
	int r = put_records(&records, e, fits);

	if (r == 0 && buf_len(&records))
		r = write_extended(out, e, buf_str(&records));
	if (r < 0)
		return r;
	put_text(h.prefix, sizeof(h.prefix), fits ? prefix : STR_NULL);
	put_text(h.name, sizeof(h.name), fits ? name : e->path);
	put_text(h.linkname, sizeof(h.linkname), e->link);
	put_octal(h.mode, sizeof(h.mode), e->mode & 07777);
	put_octal(h.uid, sizeof(h.uid), e->uid);
	put_octal(h.gid, sizeof(h.gid), e->gid);
	put_octal(h.size, sizeof(h.size), e->size > MAX_OCTAL_11 ? 0 : e->size);
	put_octal(h.mtime, sizeof(h.mtime), e->mtime_sec < 0 ? 0 : (uint64_t)e->mtime_sec);
	return put_header(out, &h);
}

int tar_write_padding(struct buf *out, uint64_t size)
{
	static const char zero[TAR_BLOCK];
	size_t over = size % TAR_BLOCK;

	return over ? buf_add(out, zero, TAR_BLOCK - over) : 0;
}

int tar_write_end(struct buf *out)
{
	static const char zero[2 * TAR_BLOCK];

	return buf_add(out, zero, sizeof(zero));
}
