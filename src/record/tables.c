/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: from time to time a writer puts the contents of the tables into the log.
 * Reading begins at the last of these entries, so a long log takes no longer than a short one. They
 * are written when the part of the log after the last one is four times as long as the tables, so
 * they cost a fixed share of what is written. Large tables are not written; then the whole log is
 * read. */
#include "base/clock.h"
#include "record/state.h"

enum { DISTANCE = 16 << 10, TABLES_MAX = 1 << 20 };

static void write_table(struct jsonout *o, const char *name, const struct state_table *t)
{
	jsonout_open(o, name, '[');
	for (const struct state_pair *p = t->pairs; p; p = p->hh.next) {
		jsonout_open(o, NULL, '{');
		state_argument_write(o, "key", str_make(p->key, p->key_n));
		state_argument_write(o, "value", str_make(p->value, p->value_n));
		jsonout_close(o, '}');
	}
	jsonout_close(o, ']');
}

void tables_write(struct state *s)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT((size_t)STATE_LINE_MAX);
	struct jsonout o = {.b = &line};
	size_t bytes = s->env.bytes + s->unset.bytes + s->storage.bytes;
	uint64_t at = s->log.size;

	if (bytes > TABLES_MAX || at - s->tables_at < MAX((size_t)DISTANCE, 4 * bytes))
		return;
	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "op", state_op_name(STATE_TABLES));
	jsonout_open(&o, "args", '{');
	write_table(&o, "env", &s->env);
	write_table(&o, "unset", &s->unset);
	write_table(&o, "storage", &s->storage);
	jsonout_close(&o, '}');
	jsonout_number(&o, "n", s->log.number);
	jsonout_number(&o, "t", clock_real_usec());
	jsonout_close(&o, '}');
	if (o.error == 0 && buf_add_char(&line, '\n') == 0 &&
		oplog_append_lines(&s->log, buf_str(&line), NULL) == 0)
		s->tables_at = at;
}

static int read_table(struct state_table *t, const json_t *pairs, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf keys = BUF_INIT(STATE_LINE_MAX);
	_cleanup_(buf_donep) struct buf values = BUF_INIT(STATE_LINE_MAX);
	const json_t *pair;
	size_t i;

	state_table_clear(t);
	json_array_foreach (pairs, i, pair) {
		struct str key, value;
		int r = state_argument_read(pair, "key", &keys, &key, err);

		if (r == 0)
			r = state_argument_read(pair, "value", &values, &value, err);
		if (r == 0)
			r = state_table_set(t, key, value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int tables_read(struct state *s, const json_t *args, struct cloche_err *err)
{
	int r = read_table(&s->env, json_object_get(args, "env"), err);

	if (r == 0)
		r = read_table(&s->unset, json_object_get(args, "unset"), err);
	return r < 0 ? r : read_table(&s->storage, json_object_get(args, "storage"), err);
}
