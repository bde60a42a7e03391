/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one state for each of what a byte can be. Output is handed on in pieces as
 * they come; only what may be the beginning of a mark waits. The first byte of a mark occurs in it
 * once, so where a mark breaks off none can have begun within it. */
#include "api/code_value.h"
#include "base/json.h"
#include "base/parse.h"

#include <errno.h>

void code_value_init(struct code_value *v, const char *nonce)
{
	*v = (struct code_value){.state = CODE_OUTPUT};
	memcpy(v->mark + 1, nonce, CODE_NONCE_BYTES);
	for (int i = 0; i < CODE_PARTS; i++)
		v->part[i] = BUF_INIT(i == CODE_JSON ? CODE_JSON_MAX : CODE_TEXT_MAX);
}

void code_value_done(struct code_value *v)
{
	for (int i = 0; i < CODE_PARTS; i++)
		buf_done(&v->part[i]);
}

static int pass(struct code_value *v, struct str *in, code_value_fn write, void *user)
{
	size_t n = str_chr(*in, v->mark[0]);
	int r = 0;

	if (v->matched > 0) {
		size_t had = v->matched;

		if (in->p[0] != v->mark[had]) {
			v->matched = 0;
			return write(user, v->mark, had);
		}
		n = 0;
	}
	if (n > 0)
		r = write(user, in->p, n);
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

/* Each part but the first may be missing; what is no such line is dropped. */
static void begin_body(struct code_value *v)
{
	struct str rest = str_make(v->head, v->head_n);
	uint64_t left[CODE_PARTS];

	v->state = CODE_OUTPUT;
	for (int i = 0; i < CODE_PARTS; i++) {
		size_t n = i == CODE_PARTS - 1 ? rest.n : str_chr(rest, ' ');

		if (parse_u64(str_prefix(rest, n), UINT64_MAX, &left[i]) < 0)
			return;
		rest = str_from_index(rest, n + 1);
	}
	v->state = CODE_BODY;
	v->whole = false;
	for (int i = 0; i < CODE_PARTS; i++) {
		v->left[i] = left[i];
		v->cut[i] = false;
		buf_clear(&v->part[i]);
	}
}

static void take_head(struct code_value *v, struct str *in)
{
	char c = in->p[0];

	*in = str_from_index(*in, 1);
	if (c == '\n')
		begin_body(v);
	else if (v->head_n == sizeof(v->head))
		v->state = CODE_OUTPUT;
	else
		v->head[v->head_n++] = c;
}

static int take_body(struct code_value *v, struct str *in)
{
	size_t n, fits;
	int i = 0;

	while (i < CODE_PARTS && v->left[i] == 0)
		i++;
	if (i == CODE_PARTS) {
		v->whole = true;
		v->state = CODE_OUTPUT;
		return 0;
	}
	n = (size_t)MIN(v->left[i], (uint64_t)in->n);
	fits = MIN(n, buf_room(&v->part[i]));
	v->cut[i] |= fits < n;
	if (buf_add(&v->part[i], in->p, fits) < 0)
		return -ENOMEM;
	v->left[i] -= n;
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
	/* One that ends where the piece does. */
	if (r >= 0 && v->state == CODE_BODY)
		r = take_body(v, &in);
	return r < 0 ? r : 0;
}

int code_value_end(struct code_value *v, code_value_fn write, void *user)
{
	size_t had = v->matched;

	v->matched = 0;
	return had > 0 ? write(user, v->mark, had) : 0;
}

int code_value_settle(struct code_value *v)
{
	struct buf *part = &v->part[CODE_JSON];
	_cleanup_json_ json_t *value = NULL;
	struct buf text = BUF_INIT(6 * CODE_JSON_MAX);
	int r;

	if (v->cut[CODE_JSON] || buf_len(part) == 0) {
		buf_clear(part);
		return 0;
	}
	r = json_text_read(buf_str(part), JSON_DECODE_ANY | JSON_ALLOW_NUL, &value, NULL);
	if (r == 0)
		r = json_text_write(&text, value, 0);
	buf_done(part);
	*part = text;
	if (r < 0)
		buf_clear(part);
	return r == -ENOMEM ? r : 0;
}
