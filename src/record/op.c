/* SPDX-License-Identifier: Apache-2.0 */
#include "record/op.h"
#include "base/base64.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>

static const struct row {
	const char *name, *first, *second;
	enum state_about about;
} rows[] = {
#define STATE_OP(name, text, first, second, about) {text, first, second, STATE_##about},
#include "record/ops.def"
#undef STATE_OP
	{"?", NULL, NULL, STATE_NOTHING},
};

const char *state_op_name(enum state_op_kind kind)
{
	return rows[kind].name;
}

enum state_about state_op_about(enum state_op_kind kind)
{
	return rows[kind].about;
}

bool state_is_ref(struct str s)
{
	return s.n == STATE_REF_BYTES && str_starts(s, STR("sha256-")) &&
	       str_is_all(str_from_index(s, 7), STR_DIGITS "abcdef");
}

static int check_path(const char *what, struct str path, struct cloche_err *err)
{
	if (path.n == 0 || path.n > STATE_PATH_MAX)
		return err_set(err, E_USAGE, "a %s has 1 to %d bytes", what, STATE_PATH_MAX);
	if (str_chr(path, '\0') < path.n)
		return err_set(err, E_USAGE, "a %s holds no NUL", what);
	return 0;
}

static int check_key(struct str key, struct cloche_err *err)
{
	if (key.n == 0 || key.n > STATE_KEY_MAX)
		return err_set(err, E_USAGE, "a key has 1 to %d bytes", STATE_KEY_MAX);
	return 0;
}

static int check_env(const struct state_op *op, struct cloche_err *err)
{
	int r = check_key(op->subject, err);

	if (r < 0)
		return r;
	if (str_chr(op->subject, '=') < op->subject.n || str_chr(op->subject, '\0') < op->subject.n)
		return err_set(err, E_USAGE, "the name of a variable holds no \"=\" and no NUL");
	if (str_chr(op->object, '\0') < op->object.n)
		return err_set(err, E_USAGE, "the value of a variable holds no NUL");
	if (op->subject.n + 1 + op->object.n > STATE_ENV_MAX)
		return err_set(err, E_LIMIT, "a variable has at most %d bytes, name and value",
			STATE_ENV_MAX);
	return 0;
}

static int check_files(const struct state_op *op, struct cloche_err *err)
{
	int r = check_path("path", op->subject, err);

	if (r == 0 && op->mode != STATE_NO_MODE && op->mode > 07777)
		return err_set(err, E_USAGE, "a mode is at most 07777");
	if (r == 0 && (op->kind == STATE_FS_RENAME || op->kind == STATE_FS_SYMLINK))
		r = check_path(rows[op->kind].second, op->object, err);
	if (r == 0 && op->is_ref && !state_is_ref(op->object))
		return err_set(err, E_USAGE, "a reference is \"sha256-\" and 64 digits");
	if (r == 0 && op->kind == STATE_FS_CHMOD && op->mode == STATE_NO_MODE)
		return err_set(err, E_USAGE, "fs.chmod needs a mode");
	return r;
}

/* The arguments of events that are references. */
static const char *const event_refs[] = {"ref", "stdoutRef", "stderrRef", "codeRef"};

static int check_refs(const struct state_op *op, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(event_refs); i++) {
		const json_t *ref = json_object_get(op->args, event_refs[i]);

		if (ref && !state_is_ref(json_str(ref)))
			return err_set(err, E_USAGE, "\"%s\" is no reference", event_refs[i]);
	}
	return 0;
}

bool state_op_ref(const struct state_op *op, unsigned i, struct str *ret)
{
	if (state_op_about(op->kind) != STATE_EVENTS && op->kind != STATE_UNKNOWN) {
		*ret = op->object;
		return op->is_ref && i == 0;
	}
	for (size_t at = 0; at < ARRAY_SIZE(event_refs); at++) {
		*ret = json_str_at(op->args, event_refs[at]);
		if (state_is_ref(*ret) && i-- == 0)
			return true;
	}
	return false;
}

int state_op_check(const struct state_op *op, struct cloche_err *err)
{
	switch (state_op_about(op->kind)) {
	case STATE_FILES:
		return check_files(op, err);
	case STATE_ENV:
		return check_env(op, err);
	case STATE_STORAGE:
		if (op->object.n > STATE_VALUE_MAX)
			return err_set(
				err, E_LIMIT, "a value has at most %d bytes", STATE_VALUE_MAX);
		return op->kind == STATE_STORAGE_CLEAR ? 0 : check_key(op->subject, err);
	case STATE_EVENTS:
		return check_refs(op, err);
	case STATE_NOTHING:
		break;
	}
	return err_set(err, E_USAGE, "no such operation");
}

/* --- writing --- */

void state_argument_write(struct jsonout *o, const char *key, struct str value)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(STATE_LINE_MAX);
	char name[24];

	jsonout_str(o, key, str_make(value.p ? value.p : "", value.n));
	if (o->error < 0 || utf8_is_valid(value))
		return;
	snprintf(name, sizeof(name), "%s64", key);
	o->error = base64_encode(&text, value);
	if (o->error == 0)
		jsonout_str(o, name, buf_str(&text));
}

static void write_event(struct jsonout *o, const struct state_op *op)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(STATE_LINE_MAX);

	if (op->args)
		o->error = json_text_write(&text, op->args, JSON_TEXT_COMPACT);
	if (o->error == 0)
		jsonout_raw(o, "args", op->args ? buf_str(&text) : op->object);
}

static void write_arguments(struct jsonout *o, const struct state_op *op)
{
	const struct row *row = &rows[op->kind];

	jsonout_open(o, "args", '{');
	if (row->first)
		state_argument_write(o, row->first, op->subject);
	if (row->second)
		state_argument_write(o, op->is_ref ? "ref" : row->second, op->object);
	if (op->mode != STATE_NO_MODE)
		jsonout_number(o, "mode", op->mode);
	if (op->is_new)
		jsonout_bool(o, "new", true);
	if (op->exec)
		jsonout_number(o, "exec", op->exec);
	if (op->changed_usec)
		jsonout_number(o, "changed", op->changed_usec);
	jsonout_close(o, '}');
}

int state_op_write(struct buf *out, const struct state_op *op)
{
	struct jsonout o = {.b = out};

	jsonout_open(&o, NULL, '{');
	jsonout_str(&o, "op", op->kind == STATE_UNKNOWN ? op->name : str_from(rows[op->kind].name));
	if (state_op_about(op->kind) == STATE_EVENTS || (op->kind == STATE_UNKNOWN && op->args))
		write_event(&o, op);
	else if (op->kind != STATE_UNKNOWN)
		write_arguments(&o, op);
	if (op->number)
		jsonout_number(&o, "n", op->number);
	if (op->usec)
		jsonout_number(&o, "t", op->usec);
	jsonout_close(&o, '}');
	return o.error < 0 ? o.error : buf_add_char(out, '\n');
}

/* --- reading --- */

void state_line_done(struct state_line *l)
{
	json_decref(l->doc);
	buf_done(&l->bytes[0]);
	buf_done(&l->bytes[1]);
	*l = STATE_LINE_INIT;
}

static int no_operation(struct cloche_err *err, const char *why)
{
	return err_set(err, E_CORRUPT, "it is no operation: %s", why);
}

static enum state_op_kind find_kind(struct str name)
{
	size_t i = 0;

	while (i < STATE_UNKNOWN && !str_eq(name, str_from(rows[i].name)))
		i++;
	return (enum state_op_kind)i;
}

int state_argument_read(const json_t *args, const char *key, struct buf *bytes, struct str *ret,
	struct cloche_err *err)
{
	char name[24];
	const json_t *encoded;
	int r;

	snprintf(name, sizeof(name), "%s64", key);
	encoded = json_object_get(args, name);
	if (!encoded) {
		*ret = json_str_at(args, key);
		return ret->p ? 0 : no_operation(err, "an argument is missing, or is no string");
	}
	buf_clear(bytes);
	r = json_is_string(encoded) ? base64_decode(bytes, json_str(encoded)) : -EINVAL;
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0)
		return no_operation(err, "an argument is no base64");
	*ret = buf_str(bytes);
	return 0;
}

static int read_arguments(struct state_line *l, const json_t *args, struct cloche_err *err)
{
	const struct row *row = &rows[l->op.kind];
	const json_t *mode = json_object_get(args, "mode");
	bool may_be_ref = l->op.kind == STATE_FS_WRITE || l->op.kind == STATE_FS_APPEND;
	const char *second = row->second;
	int r = 0;

	l->op.is_ref = l->op.kind == STATE_ASSETS_UPLOAD || l->op.kind == STATE_FS_UNPACK ||
		       (may_be_ref && json_object_get(args, "ref") != NULL);
	l->op.is_new = json_is_true(json_object_get(args, "new"));
	l->op.changed_usec = json_count_at(args, "changed");
	l->op.exec = (uint32_t)MIN(json_count_at(args, "exec"), UINT32_MAX);
	if (second && l->op.is_ref)
		second = "ref";
	if (row->first)
		r = state_argument_read(args, row->first, &l->bytes[0], &l->op.subject, err);
	if (r == 0 && second)
		r = state_argument_read(args, second, &l->bytes[1], &l->op.object, err);
	if (r == 0 && mode) {
		json_int_t n = json_is_integer(mode) ? json_integer_value(mode) : -1;

		if (n < 0 || n > 07777)
			return no_operation(err, "a mode is a number up to 4095");
		l->op.mode = (uint32_t)n;
	}
	return r;
}

int state_line_read_value(struct state_line *ret, json_t *value, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct str name = json_str_at(value, "op");
	const json_t *args = json_object_get(value, "args");
	int r;

	ret->op = (struct state_op){.mode = STATE_NO_MODE,
		.number = json_count_at(value, "n"),
		.usec = json_count_at(value, "t")};
	if (!name.p)
		return no_operation(err, "no object with a string \"op\"");
	ret->op.kind = find_kind(name);
	ret->op.args = args;
	if (ret->op.kind == STATE_UNKNOWN) {
		ret->op.name = name;
		return 0;
	}
	if (!json_is_object(args))
		return no_operation(err, "\"args\" is no object");
	if (ret->op.kind == STATE_TABLES)
		return 0;
	r = state_op_about(ret->op.kind) == STATE_EVENTS ? 0 : read_arguments(ret, args, err);
	if (r < 0)
		return r;
	if (state_op_check(&ret->op, &why) < 0)
		return no_operation(err, why.message);
	return 0;
}

int state_line_read(struct state_line *ret, struct str text, struct cloche_err *err)
{
	int r;

	json_decref(ret->doc);
	ret->doc = NULL;
	if (text.n > STATE_LINE_MAX)
		return no_operation(err, "the line is too long");
	r = json_text_read(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &ret->doc, NULL);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0)
		return no_operation(err, "no JSON");
	return state_line_read_value(ret, ret->doc, err);
}
