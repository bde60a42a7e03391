/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a state machine over blocks of 512 bytes. An entry needs memory for one
 * block and its extended headers (at most TAR_MAX_EXTENDED each); data is passed on as it comes.
 *
 * Accepted: ustar, pax, GNU's long names and its numbers in base 256, and the form before all of
 * them (no magic). Refused: sparse files and archives in several volumes, because their data would
 * be misread, and unknown types. Every length is checked before it is used. */
#include "base/parse.h"
#include "files/tar.h"
#include "files/tar_format.h"

#include <errno.h>

enum { NSEC_PER_SEC = 1000000000 };
#define MAX_TIME (INT64_C(1) << 60) /* seconds, far beyond what file systems support */

enum state {
	HEADER,
	META, /* text of an extended header */
	DATA,
	PADDING, /* the rest of the last block */
	OVER,
};

/* Values from extended headers for the next entry. */
struct extended {
	struct buf path, link;
	bool has_path, has_link, has_size, has_uid, has_gid, has_mtime;
	uint64_t size, uid, gid;
	int64_t mtime_sec;
	uint32_t mtime_nsec;
};

struct tar_reader {
	const struct tar_reader_ops *ops;
	void *user;
	enum state state;
	char block[TAR_BLOCK];
	size_t block_n;
	char meta_type;
	struct buf meta;
	uint64_t left; /* bytes left in META, DATA or PADDING */
	size_t padding;
	bool in_entry;
	struct extended x;
};

static int malformed(struct files_error *e, const char *why)
{
	return files_fail(e, EBADMSG, STR_NULL, why);
}

static void extended_clear(struct extended *x)
{
	buf_done(&x->path);
	buf_done(&x->link);
	*x = (struct extended){.path = BUF_INIT(TAR_MAX_NAME), .link = BUF_INIT(TAR_MAX_NAME)};
}

struct tar_reader *tar_reader_new(const struct tar_reader_ops *ops, void *user)
{
	struct tar_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = ops;
	r->user = user;
	r->meta = BUF_INIT(TAR_MAX_EXTENDED);
	extended_clear(&r->x);
	return r;
}

struct tar_reader *tar_reader_free(struct tar_reader *r)
{
	if (!r)
		return NULL;
	buf_done(&r->meta);
	extended_clear(&r->x);
	free(r);
	return NULL;
}

/* GNU: a first byte of 0x80 (0xff if negative), then big-endian two's complement. */
static bool get_base256(const unsigned char *at, size_t size, int64_t *ret)
{
	uint64_t value = at[0] == 0xff ? UINT64_MAX : 0;

	for (size_t i = 1; i < size; i++) {
		/* Only copies of the sign may be shifted out. */
		if (value >> 55 != (at[0] == 0xff ? UINT64_MAX >> 55 : 0))
			return false;
		value = value << 8 | at[i];
	}
	*ret = (int64_t)value;
	return (at[0] == 0xff) == (*ret < 0);
}

/* Spaces, octal digits, then only spaces and NULs. */
static bool get_octal(const char *at, size_t size, int64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	while (i < size && at[i] == ' ')
		i++;
	for (; i < size && at[i] >= '0' && at[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(at[i] - '0'); /* 12 digits at most */
	for (; i < size; i++)
		if (at[i] != ' ' && at[i] != '\0')
			return false;
	*ret = (int64_t)value;
	return true;
}

static bool get_number(const char *at, size_t size, int64_t *ret)
{
	const unsigned char *u = (const unsigned char *)at;

	if (u[0] == 0x80 || u[0] == 0xff)
		return get_base256(u, size, ret);
	return get_octal(at, size, ret);
}

static struct str field(const char *at, size_t size)
{
	return str_prefix(str_make(at, size), str_chr(str_make(at, size), '\0'));
}

/* Accept sums of signed bytes too, as some old writers made them. */
static bool checksum_is_right(const struct tar_header *h)
{
	const unsigned char *at = (const unsigned char *)h;
	int64_t want, sum = 0, signed_sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		bool own = i >= offsetof(struct tar_header, checksum) &&
			   i < offsetof(struct tar_header, type);

		sum += own ? ' ' : at[i];
		signed_sum += own ? ' ' : (signed char)at[i];
	}
	return get_octal(h->checksum, sizeof(h->checksum), &want) &&
	       (want == sum || want == signed_sum);
}

static bool block_is_zero(const char *p)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (p[i])
			return false;
	return true;
}

static int keep(struct buf *b, struct str value, bool *has, struct files_error *e)
{
	int r;

	if (value.n == 0 || str_chr(value, '\0') < value.n)
		return malformed(e, "an extended header has a broken name");
	buf_clear(b);
	r = buf_add_str(b, value);
	if (r < 0)
		return files_fail(e, r == -E2BIG ? ENAMETOOLONG : -r, STR_NULL, NULL);
	*has = true;
	return 0;
}

/* "[-]SECONDS[.FRACTION]"; digits beyond nanoseconds are dropped. */
static bool get_time(struct str s, int64_t *ret_sec, uint32_t *ret_nsec)
{
	bool negative = s.n && s.p[0] == '-';
	struct str whole, fraction;
	uint32_t nsec = 0;
	uint64_t sec;

	s = str_from_index(s, negative);
	whole = str_prefix(s, str_chr(s, '.'));
	fraction = str_from_index(s, whole.n + 1);
	if (parse_u64(whole, MAX_TIME, &sec) < 0)
		return false;
	for (size_t i = 0; i < fraction.n; i++)
		if (fraction.p[i] < '0' || fraction.p[i] > '9')
			return false;
	for (size_t i = 0; i < 9; i++)
		nsec = 10 * nsec + (i < fraction.n ? (uint32_t)(fraction.p[i] - '0') : 0);
	*ret_sec = negative ? -(int64_t)sec : (int64_t)sec;
	*ret_nsec = nsec;
	if (negative && nsec) {
		*ret_sec -= 1;
		*ret_nsec = NSEC_PER_SEC - nsec;
	}
	return true;
}

static int take_record(
	struct tar_reader *r, struct str key, struct str value, struct files_error *e)
{
	struct extended *x = &r->x;
	bool ok = true;

	if (str_starts(key, STR("GNU.sparse.")))
		return files_fail(
			e, EOPNOTSUPP, STR_NULL, "sparse files in archives are not taken");
	/* A record without a value, which POSIX lets withdraw an earlier one, is refused. */
	if (str_eq(key, STR("path")))
		return keep(&x->path, value, &x->has_path, e);
	if (str_eq(key, STR("linkpath")))
		return keep(&x->link, value, &x->has_link, e);
	if (str_eq(key, STR("size")))
		ok = x->has_size = parse_u64(value, INT64_MAX, &x->size) == 0;
	else if (str_eq(key, STR("uid")))
		ok = x->has_uid = parse_u64(value, UINT32_MAX, &x->uid) == 0;
	else if (str_eq(key, STR("gid")))
		ok = x->has_gid = parse_u64(value, UINT32_MAX, &x->gid) == 0;
	else if (str_eq(key, STR("mtime")))
		ok = x->has_mtime = get_time(value, &x->mtime_sec, &x->mtime_nsec);
	return ok ? 0 : malformed(e, "an extended header has a broken value");
}

/* "LENGTH KEY=VALUE\n"... */
static int take_records(struct tar_reader *r, bool global, struct files_error *e)
{
	struct str rest = buf_str(&r->meta);

	while (rest.n) {
		size_t digits = str_chr(str_prefix(rest, 20), ' ');
		uint64_t length;
		struct str record, key;
		size_t equals;
		int ret;

		if (parse_u64(str_prefix(rest, digits), rest.n, &length) < 0 ||
			length < digits + 4 || rest.p[length - 1] != '\n')
			return malformed(e, "an extended header has a broken record");
		record = str_make(rest.p + digits + 1, (size_t)length - digits - 2);
		rest = str_from_index(rest, (size_t)length);
		equals = str_chr(record, '=');
		if (equals == 0 || equals == record.n)
			return malformed(e, "an extended header has a broken record");
		key = str_prefix(record, equals);
		/* Global records are ignored, except those for sparse files. */
		if (global && !str_starts(key, STR("GNU.sparse.")))
			continue;
		ret = take_record(r, key, str_from_index(record, equals + 1), e);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Parse the whole extended header in r->meta. */
static int take_meta(struct tar_reader *r, struct files_error *e)
{
	struct str text = buf_str(&r->meta);
	int ret;

	switch (r->meta_type) {
	case 'L':
	case 'K':
		text = field(text.p, text.n);
		ret = r->meta_type == 'L' ? keep(&r->x.path, text, &r->x.has_path, e)
					  : keep(&r->x.link, text, &r->x.has_link, e);
		break;
	default:
		ret = take_records(r, r->meta_type == 'g', e);
		break;
	}
	buf_clear(&r->meta);
	return ret;
}

static bool get_type(char c, enum tar_type *ret)
{
	static const char letters[] = TAR_LETTERS;
	const char *at = c ? strchr(letters, c) : letters;

	if (c == '7') /* contiguous, which means nothing */
		at = letters;
	if (at)
		*ret = (enum tar_type)(at - letters);
	return at != NULL;
}

static int fill_numbers(
	const struct tar_reader *r, const struct tar_header *h, struct tar_entry *ret)
{
	int64_t mode, uid, gid, size, mtime;

	if (!get_number(h->mode, sizeof(h->mode), &mode) ||
		!get_number(h->uid, sizeof(h->uid), &uid) ||
		!get_number(h->gid, sizeof(h->gid), &gid) ||
		!get_number(h->size, sizeof(h->size), &size) ||
		!get_number(h->mtime, sizeof(h->mtime), &mtime))
		return -1;
	if (mode < 0 || size < 0 || uid < 0 || uid > UINT32_MAX || gid < 0 || gid > UINT32_MAX ||
		mtime > MAX_TIME || mtime < -MAX_TIME)
		return -1;
	ret->mode = (uint32_t)mode & 07777;
	ret->uid = r->x.has_uid ? r->x.uid : (uint64_t)uid;
	ret->gid = r->x.has_gid ? r->x.gid : (uint64_t)gid;
	ret->size = r->x.has_size ? r->x.size : (uint64_t)size;
	ret->mtime_sec = r->x.has_mtime ? r->x.mtime_sec : mtime;
	ret->mtime_nsec = r->x.mtime_nsec;
	return 0;
}

/* Return the path of the plain header; joined is memory for it. */
static struct str plain_path(const struct tar_header *h, char joined[sizeof(h->prefix) + 101])
{
	struct str prefix = field(h->prefix, sizeof(h->prefix));
	struct str name = field(h->name, sizeof(h->name));

	/* GNU's older form uses the prefix field for other data. */
	if (memcmp(h->magic, "ustar", 6) != 0 || prefix.n == 0)
		return name;
	memcpy(joined, prefix.p, prefix.n);
	joined[prefix.n] = '/';
	if (name.n)
		memcpy(joined + prefix.n + 1, name.p, name.n);
	return str_make(joined, prefix.n + 1 + name.n);
}

static int begin_entry(struct tar_reader *r, const struct tar_header *h, struct files_error *e)
{
	char joined[sizeof(h->prefix) + sizeof(h->name) + 1];
	struct tar_entry entry = {0};
	int ret;

	entry.path = r->x.has_path ? buf_str(&r->x.path) : plain_path(h, joined);
	entry.link = r->x.has_link ? buf_str(&r->x.link) : field(h->linkname, sizeof(h->linkname));
	if (!get_type(h->type, &entry.type))
		return files_fail(
			e, EOPNOTSUPP, entry.path, "an entry of a type that is not taken");
	if (fill_numbers(r, h, &entry) < 0)
		return malformed(e, "a header has a broken number");
	if (entry.path.n == 0)
		return malformed(e, "an entry has no name");
	/* Old archives have no type for directories. */
	if (entry.type == TAR_FILE && entry.path.p[entry.path.n - 1] == '/')
		entry.type = TAR_DIRECTORY;
	if ((entry.type == TAR_SYMLINK || entry.type == TAR_HARDLINK) && entry.link.n == 0)
		return malformed(e, "a link has no target");
	/* Some writers set the size of a directory or a link. POSIX allows data after a hard link,
	 * but it would come twice. */
	if (entry.type != TAR_FILE)
		entry.size = 0;
	r->left = entry.size;
	r->padding = (size_t)(-entry.size % TAR_BLOCK);
	r->in_entry = true;
	r->state = DATA;
	ret = r->ops->entry(r->user, &entry, e);
	extended_clear(&r->x);
	return ret;
}

static int begin_meta(struct tar_reader *r, const struct tar_header *h, struct files_error *e)
{
	int64_t size;

	if (!get_number(h->size, sizeof(h->size), &size) || size < 0)
		return malformed(e, "a header has a broken number");
	if (size > TAR_MAX_EXTENDED)
		return files_fail(e, ENAMETOOLONG, STR_NULL, "an extended header is too long");
	r->meta_type = h->type;
	r->left = (uint64_t)size;
	r->padding = (size_t)(-(uint64_t)size % TAR_BLOCK);
	r->state = META;
	return 0;
}

static int take_header(struct tar_reader *r, struct files_error *e)
{
	struct tar_header h;

	if (block_is_zero(r->block)) {
		r->state = OVER;
		return 0;
	}
	memcpy(&h, r->block, sizeof(h));
	if (!checksum_is_right(&h))
		return malformed(e, "no tar archive, or a damaged one");
	switch (h.type) {
	case 'x':
	case 'X':
	case 'g':
	case 'L':
	case 'K':
		return begin_meta(r, &h, e);
	case 'S':
		return files_fail(
			e, EOPNOTSUPP, STR_NULL, "sparse files in archives are not taken");
	case 'M':
		return files_fail(
			e, EOPNOTSUPP, STR_NULL, "archives in several volumes are not taken");
	case 'V': /* the volume's label */
		r->state = DATA;
		r->left = 0;
		r->padding = 0;
		r->in_entry = false;
		return 0;
	default:
		return begin_entry(r, &h, e);
	}
}

/* Go on to the next state if no bytes are left in this one. */
static int advance(struct tar_reader *r, struct files_error *e)
{
	int ret = 0;

	if (r->left > 0)
		return 0;
	if (r->state == META || r->state == DATA) {
		if (r->state == META)
			ret = take_meta(r, e);
		else if (r->in_entry)
			ret = r->ops->entry_end(r->user, e);
		r->in_entry = false;
		r->left = r->padding;
		r->state = PADDING;
	}
	if (ret == 0 && r->state == PADDING && r->left == 0)
		r->state = HEADER;
	return ret;
}

static int take(struct tar_reader *r, const char *p, size_t n, struct files_error *e)
{
	switch (r->state) {
	case META:
		return buf_add(&r->meta, p, n) < 0 ? files_fail(e, ENOMEM, STR_NULL, NULL) : 0;
	case DATA:
		return r->ops->data(r->user, p, n, e);
	case HEADER:
	case PADDING:
	case OVER:
	default:
		return 0;
	}
}

int tar_reader_feed(struct tar_reader *r, const char *p, size_t n, struct files_error *e)
{
	int ret = 0;

	while (ret == 0 && n > 0 && r->state != OVER) {
		size_t some;

		if (r->state == HEADER) {
			some = MIN(n, TAR_BLOCK - r->block_n);
			memcpy(r->block + r->block_n, p, some);
			r->block_n += some;
			if (r->block_n == TAR_BLOCK) {
				r->block_n = 0;
				ret = take_header(r, e);
			}
		} else {
			some = r->left < n ? (size_t)r->left : n;
			ret = take(r, p, some, e);
			r->left -= some;
		}
		p += some;
		n -= some;
		while (ret == 0 && r->left == 0 && r->state != HEADER && r->state != OVER)
			ret = advance(r, e);
	}
	return ret;
}

int tar_reader_finish(struct tar_reader *r, struct files_error *e)
{
	return r->state == OVER ? 0 : malformed(e, "the archive is cut off");
}
