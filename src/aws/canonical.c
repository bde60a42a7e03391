/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/canonical.h"
#include "base/parse.h"

#include <errno.h>
#include <stdlib.h>

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '~';
}

int aws_encode(struct buf *out, struct str s, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	char *to;
	size_t n = 0;

	if (buf_reserve(out, 3 * s.n, &to) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (is_unreserved(c) || (keep_slash && c == '/')) {
			to[n++] = c;
			continue;
		}
		to[n++] = '%';
		to[n++] = digits[(unsigned char)c >> 4];
		to[n++] = digits[(unsigned char)c & 15];
	}
	buf_commit(out, n);
	return 0;
}

static int decode(struct buf *out, struct str s, bool plus_is_space)
{
	char *to;
	size_t n = 0;

	if (buf_reserve(out, s.n, &to) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s.n; i++) {
		int value = parse_percent(str_from_index(s, i));

		if (value >= 0) {
			to[n++] = (char)value;
			i += 2;
		} else {
			to[n++] = plus_is_space && s.p[i] == '+' ? ' ' : s.p[i];
		}
	}
	buf_commit(out, n);
	return 0;
}

int aws_decode(struct buf *out, struct str s)
{
	return decode(out, s, false);
}

/* Removes the last segment. */
static void drop_segment(struct buf *b)
{
	while (buf_len(b) > 0) {
		b->tail--;
		if (b->mem[b->tail] == '/')
			break;
	}
}

/* Drops empty segments and ".", resolves "..", and keeps a slash at the end. */
static int normalise(struct buf *out, struct str path)
{
	bool slash_ends = str_ends(path, STR("/"));
	int r = 0;

	while (path.n > 0 && r == 0) {
		struct str segment = str_next(&path, '/');

		if (segment.n == 0 || str_eq(segment, STR(".")))
			continue;
		if (str_eq(segment, STR(".."))) {
			drop_segment(out);
			continue;
		}
		r = buf_add_char(out, '/');
		if (r == 0)
			r = buf_add_str(out, segment);
	}
	if (r == 0 && (slash_ends || buf_len(out) == 0))
		r = buf_add_char(out, '/');
	return r;
}

int aws_canonical_path(struct buf *out, struct str path, enum aws_path_form form)
{
	_cleanup_(buf_donep) struct buf work = BUF_INIT(AWS_CANONICAL_MAX);
	int r = 0;

	if (path.n == 0)
		return buf_add_char(out, '/');
	if (form == AWS_PATH_WIRE)
		return buf_add_str(out, path);
	if (form == AWS_PATH_AGAIN)
		return aws_encode(out, path, true);
	r = form == AWS_PATH_ONCE ? decode(&work, path, false) : normalise(&work, path);
	if (r < 0)
		return r;
	return form == AWS_PATH_NORMAL_WIRE ? buf_add_str(out, buf_str(&work))
					    : aws_encode(out, buf_str(&work), true);
}

bool aws_next_param(struct str *query, struct str *ret_name, struct str *ret_value)
{
	struct str pair;

	if (!query->p)
		return false;
	pair = str_prefix(*query, str_chr(*query, '&'));
	*query = pair.n < query->n ? str_from_index(*query, pair.n + 1) : STR_NULL;
	*ret_name = str_next(&pair, '=');
	*ret_value = pair;
	return true;
}

struct param {
	struct str name, value; /* views into the work buffer, which has room for all */
};

static int compare_params(const void *a, const void *b)
{
	const struct param *x = a, *y = b;
	int r = str_compare(x->name, y->name);

	return r ? r : str_compare(x->value, y->value);
}

static int add_text(struct buf *work, struct str s, enum aws_query_form form, struct str *ret)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(AWS_CANONICAL_MAX);
	size_t from = work->tail;
	int r = form == AWS_QUERY_WIRE ? 0 : decode(&plain, s, form == AWS_QUERY_FORM);

	if (r == 0)
		r = form == AWS_QUERY_WIRE ? buf_add_str(work, s)
					   : aws_encode(work, buf_str(&plain), false);
	*ret = str_make(work->mem + from, work->tail - from);
	return r;
}

/* Returns 1 if the parameter was added, 0 if it is left out, or an error. */
static int add_param(struct buf *work, struct param *p, struct str name, struct str value,
	const struct aws_query_options *o)
{
	int r = add_text(work, name, o->form, &p->name);

	if (r < 0)
		return r;
	if ((o->without_signature && str_eq(p->name, STR("X-Amz-Signature"))) ||
		(o->without_token && str_eq(p->name, STR("X-Amz-Security-Token"))))
		return 0;
	r = add_text(work, value, o->form, &p->value);
	return r < 0 ? r : 1;
}

static int write_params(struct buf *out, const struct param *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((i > 0 && buf_add_char(out, '&') < 0) || buf_add_str(out, v[i].name) < 0 ||
			buf_add_char(out, '=') < 0 || buf_add_str(out, v[i].value) < 0)
			return -ENOMEM;
	return 0;
}

static size_t count_params(struct str query)
{
	size_t n = 1;

	for (size_t i = 0; i < query.n; i++)
		n += query.p[i] == '&';
	return n;
}

int aws_canonical_query(struct buf *out, struct str query, const struct aws_query_options *o)
{
	_cleanup_(buf_donep) struct buf work = BUF_INIT(AWS_CANONICAL_MAX);
	size_t max = count_params(query), n = 0;
	_cleanup_(freep) struct param *v = NULL;
	struct str name, value;
	char *reserved;
	int r = 0;

	if (query.n == 0)
		return 0;
	if (max > AWS_PARAMS_MAX)
		return -E2BIG;
	v = calloc(max, sizeof(*v));
	/* An encoded text is at most three times as long. Reserve all, so that views stay valid. */
	if (!v || buf_reserve(&work, 3 * query.n, &reserved) < 0)
		return -ENOMEM;
	while (r >= 0 && aws_next_param(&query, &name, &value)) {
		if (name.n == 0 && value.n == 0 && o->form != AWS_QUERY_WIRE)
			continue;
		r = add_param(&work, &v[n], name, value, o);
		n += r > 0;
	}
	if (r < 0)
		return r;
	qsort(v, n, sizeof(*v), compare_params);
	return write_params(out, v, n);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Drops blanks at the ends and turns runs of blanks into one space. */
static int add_value(struct buf *out, struct str s)
{
	char *to;
	size_t n = 0;

	if (buf_reserve(out, s.n, &to) < 0)
		return -ENOMEM;
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_blank(s.p[i]))
			to[n++] = s.p[i];
		else if (n > 0 && to[n - 1] != ' ')
			to[n++] = ' ';
	}
	buf_commit(out, n);
	return 0;
}

bool aws_next_name(struct str *list, struct str *ret)
{
	if (!list->p)
		return false;
	*ret = str_prefix(*list, str_chr(*list, ';'));
	*list = ret->n < list->n ? str_from_index(*list, ret->n + 1) : STR_NULL;
	return true;
}

struct str aws_field_name(struct str name)
{
	return str_eq(name, STR(":authority")) ? STR("host") : name;
}

static int add_header(struct buf *out, const struct aws_request *req, struct str name)
{
	struct str wanted = aws_field_name(name);
	bool found = false;
	int r = buf_add_str(out, name);

	for (size_t i = 0; r == 0 && i < req->n_fields; i++) {
		if (!str_ieq(req->fields[i].name, wanted))
			continue;
		r = buf_add_char(out, found ? ',' : ':');
		if (r == 0)
			r = add_value(out, req->fields[i].value);
		found = true;
	}
	if (r == 0)
		r = found ? buf_add_char(out, '\n') : -ENOENT;
	return r;
}

int aws_canonical_headers(struct buf *out, const struct aws_request *req, struct str list)
{
	struct str rest = list, name;
	int r = 0;

	while (r == 0 && aws_next_name(&rest, &name))
		r = add_header(out, req, name);
	if (r == 0)
		r = buf_add_char(out, '\n');
	return r < 0 ? r : buf_add_str(out, list);
}

struct str aws_path_of(struct str target)
{
	return str_prefix(target, str_chr(target, '?'));
}

struct str aws_query_of(struct str target)
{
	size_t at = str_chr(target, '?');

	return at < target.n ? str_from_index(target, at + 1) : STR_NULL;
}

int aws_compare_texts(const void *a, const void *b)
{
	return str_compare(*(const struct str *)a, *(const struct str *)b);
}
