/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is one state for each meaning that a byte can have. Output is passed
 * on in pieces as it comes; only a possible beginning of a mark is held back. The first byte of a
 * mark occurs in it only once, so if a match breaks off, no other mark can have begun in it. */
#include "api/run/code_value.h"
#include "base/json.h"
#include "base/parse.h"

#include <errno.h>

const char *const code_types[CODE_TYPES] = {[CODE_TEXT] = "text",
	[CODE_JSON] = "json",
	[CODE_REPR] = "repr",
	[CODE_HTML] = "html",
	[CODE_MARKDOWN] = "markdown",
	[CODE_LATEX] = "latex",
	[CODE_SVG] = "svg",
	[CODE_PNG] = "png",
	[CODE_JPEG] = "jpeg"};

static size_t most_of(enum code_type type)
{
	return type == CODE_TEXT || type == CODE_REPR ? CODE_TEXT_MAX
	       : type == CODE_JSON                    ? CODE_JSON_MAX
						      : CODE_RICH_MAX;
}

void code_value_init(struct code_value *v, const char *nonce)
{
	*v = (struct code_value){.state = CODE_OUTPUT};
	memcpy(v->mark + 1, nonce, CODE_NONCE_BYTES);
}

void code_value_done(struct code_value *v)
{
	for (size_t i = 0; i < v->parts_n; i++)
		buf_done(&v->parts[i].data);
	v->parts_n = v->part = 0;
	v->whole = false;
}

static int give(
	const struct code_value *v, const char *p, size_t n, code_value_fn write, void *user)
{
	return v->quiet ? 0 : write(user, p, n);
}

static int pass(struct code_value *v, struct str *in, code_value_fn write, void *user)
{
	size_t n = str_chr(*in, v->mark[0]);
	int r = 0;

	if (v->matched > 0) {
		size_t had = v->matched;

		if (in->p[0] != v->mark[had]) {
			v->matched = 0;
			return give(v, v->mark, had, write, user);
		}
		n = 0;
	}
	if (n > 0)
		r = give(v, in->p, n, write, user);
	*in = str_from_index(*in, n);
	if (r < 0 || in->n == 0)
		return r;
	*in = str_from_index(*in, 1);
	if (++v->matched == sizeof(v->mark)) {
		v->matched = v->head_n = 0;
		v->state = CODE_HEAD;
	}
	return 0;
}

/* "TYPE=SIZE" or "TYPE!". */
static bool read_part(struct str word, struct code_part *ret)
{
	bool cut = word.n > 0 && word.p[word.n - 1] == '!';
	size_t n = cut ? word.n - 1 : str_chr(word, '=');

	*ret = (struct code_part){.cut = cut};
	while (ret->type < CODE_TYPES &&
		!str_eq(str_prefix(word, n), str_from(code_types[ret->type])))
		ret->type++;
	if (ret->type == CODE_TYPES)
		return false;
	ret->data = BUF_INIT(most_of(ret->type));
	return cut || parse_u64(str_from_index(word, n + 1), UINT64_MAX, &ret->left) == 0;
}

/* Return false if the line is not a list of parts, or has too many of them. */
static bool read_parts(struct str line, struct code_part ret[CODE_PARTS_MAX], size_t *ret_n)
{
	size_t n = 0;

	while (line.p) {
		size_t end = str_chr(line, ' ');

		if (n == CODE_PARTS_MAX || !read_part(str_prefix(line, end), &ret[n]))
			return false;
		line = end < line.n ? str_from_index(line, end + 1) : STR_NULL;
		n++;
	}
	*ret_n = n;
	return n > 0 && ret[0].type == CODE_TEXT;
}

static void take_line(struct code_value *v)
{
	static const struct str end = STR("end ");
	struct str line = str_make(v->head, v->head_n);
	struct code_part parts[CODE_PARTS_MAX];
	uint64_t status;
	size_t n;

	v->state = CODE_OUTPUT;
	if (str_eq(line, STR("begin"))) {
		v->began = true;
		v->quiet = false;
	} else if (str_starts(line, end)) {
		if (!v->began || parse_u64(str_from_index(line, end.n), 255, &status) < 0)
			return;
		v->ended = v->quiet = true;
		v->status = (int)status;
	} else if (read_parts(line, parts, &n)) {
		code_value_done(v);
		memcpy(v->parts, parts, n * sizeof(parts[0]));
		v->parts_n = n;
		v->room = CODE_ALL_MAX;
		v->state = CODE_BODY;
	}
}

static void take_head(struct code_value *v, struct str *in)
{
	char c = in->p[0];

	*in = str_from_index(*in, 1);
	if (c == '\n')
		take_line(v);
	else if (v->head_n == sizeof(v->head))
		v->state = CODE_OUTPUT;
	else
		v->head[v->head_n++] = c;
}

static int take_body(struct code_value *v, struct str *in)
{
	struct code_part *part;
	size_t n, fits;

	while (v->part < v->parts_n && v->parts[v->part].left == 0)
		v->part++;
	if (v->part == v->parts_n) {
		v->whole = true;
		v->state = CODE_OUTPUT;
		return 0;
	}
	part = &v->parts[v->part];
	n = (size_t)MIN(part->left, (uint64_t)in->n);
	fits = MIN(n, v->room);
	fits = MIN(fits, buf_room(&part->data));
	part->cut |= fits < n;
	if (buf_add(&part->data, in->p, fits) < 0)
		return -ENOMEM;
	v->room -= fits;
	part->left -= n;
	*in = str_from_index(*in, n);
	return 0;
}

int code_value_feed(struct code_value *v, const char *p, size_t n, code_value_fn write, void *user)
{
	struct str in = str_make(p, n);
	int r = 0;

	while (r >= 0 && in.n > 0) {
		if (v->state == CODE_OUTPUT)
			r = pass(v, &in, write, user);
		else if (v->state == CODE_HEAD)
			take_head(v, &in);
		else
			r = take_body(v, &in);
	}
	/* A body may end where this piece does. */
	if (r >= 0 && v->state == CODE_BODY)
		r = take_body(v, &in);
	return r < 0 ? r : 0;
}

int code_value_end(struct code_value *v, code_value_fn write, void *user)
{
	size_t had = v->matched;

	v->matched = 0;
	return had > 0 ? give(v, v->mark, had, write, user) : 0;
}

static int settle_json(struct code_part *part)
{
	_cleanup_json_ json_t *value = NULL;
	struct buf text = BUF_INIT(6 * CODE_JSON_MAX);
	int r;

	if (part->cut || buf_len(&part->data) == 0) {
		buf_clear(&part->data);
		return 0;
	}
	r = json_text_read(buf_str(&part->data), JSON_DECODE_ANY | JSON_ALLOW_NUL, &value, NULL);
	if (r == 0)
		r = json_text_write(&text, value, 0);
	buf_done(&part->data);
	part->data = text;
	if (r < 0)
		buf_clear(&part->data);
	return r == -ENOMEM ? r : 0;
}

int code_value_settle(struct code_value *v)
{
	bool has_json = false;
	int r = 0;

	for (size_t i = 0; i < v->parts_n && r == 0; i++) {
		struct code_part *part = &v->parts[i];

		if (part->type == CODE_TEXT)
			has_json = false;
		if (part->type == CODE_JSON) {
			r = settle_json(part);
			has_json = buf_len(&part->data) > 0;
		} else if (part->type == CODE_REPR && has_json) {
			buf_clear(&part->data);
			part->cut = false;
		} else if (part->cut && part->type != CODE_TEXT && part->type != CODE_REPR) {
			buf_clear(&part->data);
		}
	}
	return r;
}

size_t code_value_results(const struct code_value *v)
{
	size_t n = 0;

	for (size_t i = 0; v->whole && i < v->parts_n; i++)
		n += v->parts[i].type == CODE_TEXT;
	return n;
}

struct code_part *code_value_part(struct code_value *v, size_t result, enum code_type type)
{
	size_t i = 0;

	if (!v->whole)
		return NULL;
	for (size_t seen = 0; i < v->parts_n; i++)
		if (v->parts[i].type == CODE_TEXT && seen++ == result)
			break;
	for (size_t first = i; i < v->parts_n; i++) {
		if (i > first && v->parts[i].type == CODE_TEXT)
			return NULL;
		if (v->parts[i].type == type)
			return &v->parts[i];
	}
	return NULL;
}
