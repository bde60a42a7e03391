/* SPDX-License-Identifier: Apache-2.0 */
#include "record/state.h"
#include "record/background.h"

struct state_pair *state_find(const struct state_table *t, struct str key)
{
	struct state_pair *p = NULL;

	if (key.n > 0)
		HASH_FIND(hh, t->pairs, key.p, key.n, p);
	return p;
}

static void remove_pair(struct state_table *t, struct state_pair *p)
{
	if (!p)
		return;
	t->bytes -= p->key_n + p->value_n;
	HASH_DEL(t->pairs, p);
	free(p->value);
	free(p);
}

void state_table_clear(struct state_table *t)
{
	struct state_pair *p, *next;

	HASH_ITER (hh, t->pairs, p, next)
		remove_pair(t, p);
}

static struct state_pair *add_pair(struct state_table *t, struct str key)
{
	struct state_pair *p = calloc(1, sizeof(*p) + key.n + 1);

	if (!p)
		return NULL;
	memcpy(p->key, key.p, key.n);
	p->key_n = key.n;
	HASH_ADD(hh, t->pairs, key, key.n, p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	t->bytes += key.n;
	return p;
}

int state_table_set(struct state_table *t, struct str key, struct str value, struct cloche_err *err)
{
	struct state_pair *p = state_find(t, key);
	size_t before = p ? p->value_n : 0, more = p ? 0 : key.n;
	char *copy;

	if (t->bytes - before + more + value.n > t->max)
		return err_set(err, E_LIMIT, "all of them together have at most %zu bytes", t->max);
	copy = str_dup(value);
	if (!copy)
		return err_nomem(err);
	p = p ? p : add_pair(t, key);
	if (!p) {
		free(copy);
		return err_nomem(err);
	}
	free(p->value);
	p->value = copy;
	p->value_n = value.n;
	t->bytes += value.n - before;
	return 0;
}

static int set_variable(struct state *s, const struct state_op *op, struct cloche_err *err)
{
	int r = state_table_set(&s->env, op->subject, op->object, err);

	if (r == 0)
		remove_pair(&s->unset, state_find(&s->unset, op->subject));
	return r;
}

static bool has_room_for_unset(const struct state *s, struct str name)
{
	return state_find(&s->unset, name) || s->unset.bytes + name.n <= s->unset.max;
}

static int unset_variable(struct state *s, struct str name, struct cloche_err *err)
{
	remove_pair(&s->env, state_find(&s->env, name));
	/* Logs of earlier versions may have more. */
	while (s->unset.pairs && !has_room_for_unset(s, name))
		remove_pair(&s->unset, s->unset.pairs);
	return state_table_set(&s->unset, name, STR(""), err);
}

int state_apply(struct state *s, const struct state_op *op, struct cloche_err *err)
{
	if (op->kind == STATE_ENV_SET)
		return set_variable(s, op, err);
	if (op->kind == STATE_STORAGE_SET)
		return state_table_set(&s->storage, op->subject, op->object, err);
	if (op->kind == STATE_ENV_DELETE)
		return unset_variable(s, op->subject, err);
	if (op->kind == STATE_STORAGE_DELETE)
		remove_pair(&s->storage, state_find(&s->storage, op->subject));
	else if (op->kind == STATE_STORAGE_CLEAR)
		state_table_clear(&s->storage);
	return 0;
}

static void forget(struct state *s)
{
	state_table_clear(&s->env);
	state_table_clear(&s->unset);
	state_table_clear(&s->storage);
	s->tables_at = 0;
}

void state_init(struct state *s)
{
	*s = STATE_INIT;
	s->env.max = STATE_ENV_TOTAL;
	s->unset.max = STATE_UNSET_TOTAL;
	s->storage.max = STATE_STORAGE_TOTAL;
}

int state_open(struct state *s, int dir, const char *name, bool writable, struct cloche_err *err)
{
	state_init(s);
	return oplog_open(&s->log, dir, name, writable, err);
}

int state_close(struct state *s, struct cloche_err *err)
{
	forget(s);
	return oplog_close(&s->log, err);
}

static int apply(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct state *s = user;
	int r;

	/* The first entry of a log that was replaced. */
	if (offset == 0)
		forget(s);
	r = s->also ? s->also(op, offset, s->also_user, err) : 0;
	if (r < 0)
		return r;
	if (op->kind != STATE_TABLES)
		return state_apply(s, op, err);
	r = s->begun ? 0 : tables_read(s, op->args, err);
	s->begun = true;
	s->tables_at = offset;
	return r;
}

int state_refresh(struct state *s, struct cloche_err *err)
{
	bool anew;
	int r = 0;

	if (s->log.size == 0) {
		s->begun = false;
		r = oplog_find(&s->log, STATE_TABLES_BEGIN, err);
		/* Without one, the whole log is read. */
		s->begun = s->log.size == 0;
	}
	if (r == 0)
		r = oplog_read(&s->log, apply, s, &anew, err);
	/* The log is empty now, or gone. */
	if (r == 0 && anew && s->log.number == 0)
		forget(s);
	return r;
}

int state_begin(struct state *s, struct cloche_err *err)
{
	int r = oplog_lock(&s->log, err);

	if (r == 0)
		r = state_refresh(s, err);
	if (r < 0)
		state_end(s);
	return r;
}

static int append(struct state *s, struct state_op *ops, size_t n, struct cloche_err *err)
{
	int r = oplog_append(&s->log, ops, n, err);

	if (r == 0) {
		tables_write(s);
	} else {
		/* The tables are ahead of the log, so read it again. */
		forget(s);
		s->log.size = s->log.number = 0;
	}
	return r;
}

int state_record(struct state *s, struct state_op *op, struct cloche_err *err)
{
	/* Apply it first, as it can be refused: an entry in the log counts as done. */
	int r = state_op_check(op, err);

	if (r == 0 && op->kind == STATE_ENV_DELETE && !has_room_for_unset(s, op->subject))
		r = err_set(err, E_LIMIT, "the names of all that are unset have at most %d bytes",
			STATE_UNSET_TOTAL);
	/* The one before may have failed. */
	if (r == 0 && s->log.size == 0)
		r = state_refresh(s, err);
	if (r == 0)
		r = state_apply(s, op, err);
	if (r < 0)
		return r;
	return append(s, op, 1, err);
}

int state_record_files(struct state *s, struct state_op *ops, size_t n, struct cloche_err *err)
{
	int r = s->log.size == 0 ? state_refresh(s, err) : 0;

	return r < 0 ? r : append(s, ops, n, err);
}

void state_end(struct state *s)
{
	oplog_unlock(&s->log);
	oplog_compact_when_due(&s->log);
}

int state_change(struct state *s, struct state_op *op, struct cloche_err *err)
{
	int r = state_begin(s, err);

	if (r == 0)
		r = state_record(s, op, err);
	state_end(s);
	return r;
}
