/* SPDX-License-Identifier: Apache-2.0 */
/* The results of an expression or a cell. */
#include "api/run/run.h"
#include "base/base64.h"
#include "base/jsonout.h"

#include <errno.h>

static struct code *finished(const cloche_run *run)
{
	return run->code && run->code->finished ? run->code : NULL;
}

size_t cloche_code_results(const cloche_run *run)
{
	return finished(run) ? code_value_results(&run->code->value) : 0;
}

static struct code_part *find_part(const cloche_run *run, size_t i, const char *type)
{
	enum code_type t = 0;

	while (t < CODE_TYPES && strcmp(code_types[t], type) != 0)
		t++;
	return t < CODE_TYPES && finished(run) ? code_value_part(&run->code->value, i, t) : NULL;
}

const void *cloche_code_result(
	const cloche_run *run, size_t i, const char *type, size_t *ret_length, bool *ret_cut)
{
	struct code_part *part = find_part(run, i, type);

	*ret_length = 0;
	if (ret_cut)
		*ret_cut = part && part->cut;
	if (!part || (part->type != CODE_TEXT && buf_len(&part->data) == 0))
		return NULL;
	*ret_length = buf_len(&part->data);
	return buf_cstr(&part->data);
}

/* --- as one document --- */

static void put_binary(struct jsonout *o, const char *key, struct str data)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(2 * CODE_RICH_MAX);

	if (buf_add_char(&text, '"') < 0 || base64_encode(&text, data) < 0 ||
		buf_add_char(&text, '"') < 0)
		o->error = -ENOMEM;
	jsonout_raw(o, key, buf_str(&text));
}

static void put_result(struct jsonout *o, const cloche_run *run, size_t i)
{
	bool cut[CODE_TYPES];

	jsonout_open(o, NULL, '{');
	for (enum code_type t = 0; t < CODE_TYPES; t++) {
		size_t n;
		const char *p = cloche_code_result(run, i, code_types[t], &n, &cut[t]);

		if (!p)
			continue;
		if (t == CODE_JSON)
			jsonout_raw(o, code_types[t], str_make(p, n));
		else if (t == CODE_PNG || t == CODE_JPEG)
			put_binary(o, code_types[t], str_make(p, n));
		else
			jsonout_str(o, code_types[t], str_make(p, n));
	}
	jsonout_open(o, "cut", '[');
	for (enum code_type t = 0; t < CODE_TYPES; t++)
		if (cut[t])
			jsonout_text(o, NULL, code_types[t]);
	jsonout_close(o, ']');
	jsonout_close(o, '}');
}

const char *cloche_code_results_json(const cloche_run *run)
{
	struct code *code = finished(run);
	struct jsonout o;

	if (!code)
		return "[]";
	if (buf_len(&code->json) == 0) {
		o = (struct jsonout){.b = &code->json};
		jsonout_open(&o, NULL, '[');
		for (size_t i = 0; i < code_value_results(&code->value); i++)
			put_result(&o, run, i);
		jsonout_close(&o, ']');
		if (o.error < 0) {
			buf_clear(&code->json);
			return NULL;
		}
	}
	return buf_cstr(&code->json);
}
