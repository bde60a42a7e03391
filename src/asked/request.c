/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/request.h"
#include "asked/asked.h"
#include "base/parse.h"
#include "base/strv.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_MAX (UINT64_C(1) << 62)

void request_done(struct request *r)
{
	free(r->id);
	free(r->hostname);
	free(r->place);
	free(r->script);
	free(r->image);
	strv_free(r->labels);
	*r = (struct request){0};
}

static int request_take_label(struct request *r, struct str line, struct cloche_err *err)
{
	_cleanup_(freep) char *key = asked_word(str_next(&line, ' '), err);
	_cleanup_(freep) char *value = key ? asked_word(line, err) : NULL;
	char *label;

	if (!value)
		return err ? -err->code : -E_PROTOCOL;
	if (asprintf(&label, "%s=%s", key, value) < 0 || strv_take(&r->labels, label) < 0)
		return err_nomem(err);
	return 0;
}

static int request_take_optional(struct request *r, struct str word)
{
	if (str_eq(word, STR("memory")))
		r->memory_optional = true;
	if (str_eq(word, STR("cpus-milli")))
		r->cpus_optional = true;
	return 0;
}

static int request_take_root(struct request *r, struct str line, struct cloche_err *err)
{
	return str_eq(str_next(&line, ' '), STR("image")) ? asked_set(&r->image, line, err) : 0;
}

/* Take a line whose value is a text or a number. */
static int request_take_plain(
	struct request *r, struct str key, struct str value, struct cloche_err *err)
{
	const struct {
		struct str key;
		char **text;
		uint64_t *number;
	} rows[] = {
		{STR("id"), &r->id, NULL},
		{STR("hostname"), &r->hostname, NULL},
		{STR("place"), &r->place, NULL},
		{STR("far"), &r->script, NULL},
		{STR("memory"), NULL, &r->memory_bytes},
		{STR("cpus-milli"), NULL, &r->cpus_milli},
		{STR("lifetime"), NULL, &r->lifetime_sec},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!str_eq(key, rows[i].key))
			continue;
		if (rows[i].text)
			return asked_set(rows[i].text, value, err);
		return parse_u64(value, NUMBER_MAX, rows[i].number) == 0
			       ? 0
			       : err_set(err, E_PROTOCOL, "a number of the request is none");
	}
	return 0;
}

int request_take_line(struct request *r, struct str line, struct cloche_err *err)
{
	int e = asked_take(&r->begun, line, err);
	struct str key = str_next(&line, ' ');

	if (e != 2)
		return e;
	if (str_eq(key, STR("label")))
		return request_take_label(r, line, err);
	if (str_eq(key, STR("optional")))
		return request_take_optional(r, line);
	if (str_eq(key, STR("root")))
		return request_take_root(r, line, err);
	return request_take_plain(r, key, line, err);
}

static int request_take(void *user, struct str line, struct cloche_err *err)
{
	return request_take_line(user, line, err);
}

int request_read(struct request *r, int fd, struct cloche_err *err)
{
	return asked_read(fd, request_take, r, err);
}
