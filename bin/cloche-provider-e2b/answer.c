/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"
#include "base/base64.h"
#include "base/json.h"

#include <errno.h>

/* Nothing is compressed, as we have not offered it. */
enum { HEAD_BYTES = 5, FLAG_OVER = 2, NO_STATUS = 255 };

static json_t *answer_json(struct str body)
{
	json_t *root = NULL;

	return body.n <= ANSWER_MAX && json_text_read(body, 0, &root, NULL) == 0 ? root : NULL;
}

/* Copy a text that may be missing. Return whether it is short enough and visible. */
static bool answer_copy(const json_t *object, const char *key, char *ret, size_t size)
{
	struct str text = json_str_at(object, key);

	if (text.n >= size || !str_is_visible(text))
		return false;
	str_copy(ret, size, text);
	return true;
}

int answer_read_sandbox(struct str body, struct answer_sandbox *ret)
{
	_cleanup_json_ json_t *root = answer_json(body);
	struct answer_sandbox s;

	if (!place_is_id(json_str_at(root, "sandboxID")) ||
		!answer_copy(root, "sandboxID", s.id, sizeof(s.id)) ||
		!answer_copy(root, "domain", s.domain, sizeof(s.domain)) ||
		!answer_copy(root, "envdAccessToken", s.token, sizeof(s.token)))
		return -EPROTO;
	*ret = s;
	return 0;
}

int answer_each_sandbox(struct str body, const char *key, const char *value,
	int (*each)(void *user, const char *id), void *user)
{
	_cleanup_json_ json_t *root = answer_json(body);
	int r = 0;

	if (!json_is_array(root))
		return -EPROTO;
	for (size_t i = 0; i < json_array_size(root) && r == 0; i++) {
		const json_t *one = json_array_get(root, i);
		struct str id = json_str_at(one, "sandboxID");

		if (!str_eq(json_str_at(json_object_get(one, "metadata"), key), str_from(value)))
			continue;
		r = place_is_id(id)
			    ? each(user, json_string_value(json_object_get(one, "sandboxID")))
			    : -EPROTO;
	}
	return r;
}

static void answer_show(struct str text, char ret[ANSWER_TEXT_MAX + 1])
{
	size_t n = MIN(text.n, (size_t)ANSWER_TEXT_MAX);

	for (size_t i = 0; i < n; i++)
		ret[i] = text.p[i] >= ' ' && text.p[i] < 0x7f ? text.p[i] : '?';
	ret[n] = '\0';
}

void answer_message(struct str body, char ret[ANSWER_TEXT_MAX + 1])
{
	_cleanup_json_ json_t *root = answer_json(body);

	answer_show(json_str_at(root, "message"), ret);
}

/* --- events --- */

int answer_events_feed(struct answer_events *e, struct str bytes)
{
	return buf_add_str(&e->in, bytes);
}

/* {"error": {"code": ..., "message": ...}}, or nothing in particular. */
static int answer_take_over(struct answer_events *e, const json_t *root, enum answer_event *ret)
{
	const json_t *error = json_object_get(root, "error");

	if (error && !json_is_object(error))
		return -EPROTO;
	answer_show(
		json_str_at(error, json_str_at(error, "message").n ? "message" : "code"), e->text);
	if (error && !e->text[0])
		answer_show(STR("an error without a word"), e->text);
	e->last = *ret = ANSWER_OVER;
	return 1;
}

static int answer_take_start(struct answer_events *e, const json_t *start, enum answer_event *ret)
{
	uint64_t pid = json_count_at(start, "pid");

	if (e->last != ANSWER_NOTHING || pid == 0 || pid > UINT32_MAX)
		return -EPROTO;
	e->number = (uint32_t)pid;
	e->last = *ret = ANSWER_START;
	return 1;
}

/* A status of 0 may be left out, as any value that proto3 has by itself. */
static int answer_take_end(struct answer_events *e, const json_t *end, enum answer_event *ret)
{
	const json_t *code = json_object_get(end, "exitCode");
	json_int_t status = json_integer_value(code);

	if (code && !json_is_integer(code))
		return -EPROTO;
	e->number =
		json_is_true(json_object_get(end, "exited")) && status >= 0 && status < NO_STATUS
			? (uint32_t)status
			: NO_STATUS;
	answer_show(json_str_at(end, "error"), e->text);
	e->last = *ret = ANSWER_END;
	return 1;
}

static int answer_take_data(struct answer_events *e, const json_t *data, enum answer_event *ret)
{
	bool is_err = json_object_get(data, "stderr") != NULL;
	const json_t *text = json_object_get(data, is_err ? "stderr" : "stdout");

	if (!json_is_string(text) || base64_decode(&e->data, json_str(text)) < 0)
		return -EPROTO;
	*ret = is_err ? ANSWER_ERR : ANSWER_OUT;
	return 1;
}

static int answer_take_event(struct answer_events *e, const json_t *event, enum answer_event *ret)
{
	const json_t *what = json_object_get(event, "start");

	if (what)
		return answer_take_start(e, what, ret);
	if (e->last != ANSWER_START)
		return -EPROTO;
	what = json_object_get(event, "data");
	if (what)
		return answer_take_data(e, what, ret);
	what = json_object_get(event, "end");
	if (what)
		return answer_take_end(e, what, ret);
	*ret = ANSWER_NOTHING;
	return json_object_get(event, "keepalive") ? 1 : -EPROTO;
}

/* Take a whole frame. */
static int answer_take_frame(
	struct answer_events *e, unsigned flags, struct str text, enum answer_event *ret)
{
	_cleanup_json_ json_t *root = answer_json(text);

	if (!json_is_object(root) || e->last == ANSWER_OVER)
		return -EPROTO;
	return flags & FLAG_OVER ? answer_take_over(e, root, ret)
				 : answer_take_event(e, json_object_get(root, "event"), ret);
}

int answer_events_next(struct answer_events *e, enum answer_event *ret)
{
	struct str in = buf_str(&e->in);
	const unsigned char *head = (const unsigned char *)in.p;
	uint32_t n;
	int r;

	buf_clear(&e->data);
	e->text[0] = '\0';
	if (in.n < HEAD_BYTES)
		return 0;
	n = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
	if (n > ANSWER_MAX || head[0] & ~(unsigned)FLAG_OVER)
		return -EPROTO;
	if (in.n - HEAD_BYTES < n)
		return 0;
	r = answer_take_frame(e, head[0], str_make(in.p + HEAD_BYTES, n), ret);
	buf_consume(&e->in, HEAD_BYTES + n);
	return r;
}
