/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonout.h"
#include "base/escape.h"

static void jsonout_add(struct jsonout *o, struct str s)
{
	if (o->error == 0)
		o->error = buf_add_str(o->b, s);
}

static void jsonout_begin(struct jsonout *o, const char *key)
{
	if (o->behind)
		jsonout_add(o, STR(","));
	if (key) {
		jsonout_add(o, STR("\""));
		jsonout_add(o, str_from(key));
		jsonout_add(o, STR("\":"));
	}
	o->behind = true;
}

void jsonout_open(struct jsonout *o, const char *key, char bracket)
{
	jsonout_begin(o, key);
	jsonout_add(o, str_make(&bracket, 1));
	o->behind = false;
}

void jsonout_close(struct jsonout *o, char bracket)
{
	jsonout_add(o, str_make(&bracket, 1));
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
	jsonout_add(o, json);
}

void jsonout_member(struct jsonout *o, struct str key, struct str value)
{
	jsonout_str(o, NULL, key);
	jsonout_add(o, STR(":"));
	o->behind = false;
	jsonout_str(o, NULL, value);
}
