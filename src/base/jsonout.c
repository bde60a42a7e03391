/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonout.h"
#include "base/escape.h"

static void jsonout_char(struct jsonout *o, char c)
{
	if (o->error == 0)
		o->error = buf_add_char(o->b, c);
}

/* Write the comma, and the key with its quotes and colon, in one piece: the network log has some
 * ten of them for each request. */
static void jsonout_begin(struct jsonout *o, const char *key)
{
	size_t n = key ? strlen(key) : 0;
	char *at;

	if (o->error == 0)
		o->error = buf_reserve(o->b, key ? n + 4 : 1, &at);
	if (o->error < 0)
		return;
	if (o->behind)
		*at++ = ',';
	if (key) {
		*at++ = '"';
		at = mempcpy(at, key, n);
		*at++ = '"';
		*at++ = ':';
	}
	buf_commit(o->b, (size_t)(at - (o->b->mem + o->b->tail)));
	o->behind = true;
}

void jsonout_open(struct jsonout *o, const char *key, char bracket)
{
	jsonout_begin(o, key);
	jsonout_char(o, bracket);
	o->behind = false;
}

void jsonout_close(struct jsonout *o, char bracket)
{
	jsonout_char(o, bracket);
	o->behind = true;
}

void jsonout_text(struct jsonout *o, const char *key, const char *value)
{
	if (value)
		jsonout_str(o, key, str_from(value));
	else
		jsonout_raw(o, key, STR("null"));
}

void jsonout_str(struct jsonout *o, const char *key, struct str value)
{
	jsonout_begin(o, key);
	if (o->error == 0)
		o->error = escape_json(o->b, value, false);
}

void jsonout_number(struct jsonout *o, const char *key, uint64_t value)
{
	jsonout_begin(o, key);
	if (o->error == 0)
		o->error = buf_add_uint(o->b, value);
}

void jsonout_bool(struct jsonout *o, const char *key, bool value)
{
	jsonout_raw(o, key, value ? STR("true") : STR("false"));
}

void jsonout_raw(struct jsonout *o, const char *key, struct str json)
{
	jsonout_begin(o, key);
	if (o->error == 0 && json.n > 0)
		o->error = buf_add_str(o->b, json);
}

void jsonout_member(struct jsonout *o, struct str key, struct str value)
{
	jsonout_str(o, NULL, key);
	jsonout_char(o, ':');
	o->behind = false;
	jsonout_str(o, NULL, value);
}
