/* fuzz-deps: code_value */
/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever code prints in place of its value: in one piece or byte by byte comes the same of it,
 * what is JSON is JSON on one line, and no more comes out than went in. */
#include "api/run/code_value.h"
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static int keep(void *user, const char *p, size_t n)
{
	return buf_add(user, p, n);
}

static void feed(struct code_value *v, struct buf *out, const char *p, size_t n, size_t piece)
{
	/* A fuzzer finds no nonce of 32 bytes by itself: seeds have this one. */
	code_value_init(v, "0123456789abcdefghijklmnopqrstuv");
	v->quiet = n > 0 && p[0] == 'q';
	for (size_t at = 0; at < n; at += piece)
		require(code_value_feed(v, p + at, MIN(piece, n - at), keep, out) == 0);
	require(code_value_end(v, keep, out) == 0);
	require(code_value_settle(v) == 0);
}

static void check_json(struct str text)
{
	json_t *value = NULL;

	if (text.n == 0)
		return;
	for (size_t i = 0; i < text.n; i++)
		require((unsigned char)text.p[i] >= 0x20 && (unsigned char)text.p[i] < 0x80);
	require(json_text_read(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &value, NULL) == 0);
	json_decref(value);
}

static void check_parts(struct code_value *one, struct code_value *other)
{
	size_t all = 0;

	require(code_value_results(one) == code_value_results(other));
	for (size_t i = 0; i < code_value_results(one); i++)
		for (enum code_type type = 0; type < CODE_TYPES; type++) {
			struct code_part *part = code_value_part(one, i, type),
					 *same = code_value_part(other, i, type);

			require(!part == !same && (part || type != CODE_TEXT));
			if (!part)
				continue;
			require(part->cut == same->cut);
			require(str_eq(buf_str(&part->data), buf_str(&same->data)));
			if (type == CODE_JSON)
				check_json(buf_str(&part->data));
			all += buf_len(&part->data);
		}
	require(all <= (size_t)6 * CODE_ALL_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf one = BUF_INIT(SIZE_MAX / 2), other = BUF_INIT(SIZE_MAX / 2);
	struct code_value whole, bytes;

	feed(&whole, &one, (const char *)data, size, size ? size : 1);
	feed(&bytes, &other, (const char *)data, size, 1);
	require(buf_len(&one) <= size && str_eq(buf_str(&one), buf_str(&other)));
	require(whole.whole == bytes.whole);
	require(whole.began == bytes.began && whole.ended == bytes.ended);
	require(whole.status == bytes.status && whole.status >= 0 && whole.status < 256);
	check_parts(&whole, &bytes);
	code_value_done(&whole);
	code_value_done(&bytes);
	buf_done(&one);
	buf_done(&other);
	return 0;
}
