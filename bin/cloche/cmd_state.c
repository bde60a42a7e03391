/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche env` and `cloche kv`: the two tables of a sandbox's state. */
#include "cli.h"
#include "json_out.h"
#include "names.h"
#include "terminal_filter.h"

#include <cloche/state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SET = 1, MAX_VALUE = 16 << 20 };

struct state_options {
	bool json, null_ends;
};

static const struct option options[] = {
	{"json", 0, NULL, "print one JSON document", .of = "get, list, keys",
		.at = offsetof(struct state_options, json)},
	{"null", '0', NULL, "end each with NUL, and show bytes as they are",
		.of = "get, list, keys", .at = offsetof(struct state_options, null_ends)},
	{0},
};

struct request {
	cloche_state *state;
	enum cloche_state_part part;
	const struct state_options *o;
	char **v;             /* operands after the operation, ends with NULL */
	json_t *doc, *others; /* others: an array of the pairs whose key is not UTF-8 */
	bool ok;
	cloche_err *err;
};

static int state_finish(const struct request *q)
{
	return q->ok ? 0 : EXIT_CLOCHE;
}

/* Return a string or, for bytes that are not UTF-8, an object that has them in hexadecimal, too. */
static json_t *text_or_bytes(const char *name, const void *p, size_t n)
{
	json_t *text = json_stringn(n ? p : "", n), *object;

	if (text)
		return text;
	object = json_object();
	name_to_json(object, name, p, n);
	return object;
}

/* Print a value as one line, filtered if it goes to a terminal. With -0, print it unchanged. */
static bool state_print_value(const struct request *q, const void *value, size_t n)
{
	struct terminal_filter f;
	bool ok;

	if (q->o->json)
		return json_print(text_or_bytes("value", value, n));
	if (q->o->null_ends)
		return put(STDOUT_FILENO, value, n) && put(STDOUT_FILENO, "", 1);
	terminal_filter_open(&f, STDOUT_FILENO, false);
	ok = terminal_filter_write(&f, STDOUT_FILENO, value, n) &&
	     terminal_filter_write(&f, STDOUT_FILENO, "\n", 1);
	return terminal_filter_close(&f, STDOUT_FILENO) && ok;
}

static int do_get(struct request *q)
{
	const void *value;
	size_t n;
	int r = cloche_state_get(q->state, q->part, q->v[0], strlen(q->v[0]), &value, &n, q->err);

	if (r == -CLOCHE_E_NOT_FOUND) {
		if (q->o->json)
			return put_line("null") ? NOT_SET : EXIT_CLOCHE;
		if (q->part == CLOCHE_STATE_ENV)
			say("%s was not set by \"cloche env\", which does not show what \"cloche "
			    "create\" set",
				q->v[0]);
		else
			say("%s is not set", q->v[0]);
		return NOT_SET;
	}
	if (r == 0)
		q->ok = state_print_value(q, value, n);
	return r < 0 ? r : state_finish(q);
}

static int state_set(struct request *q, const char *key, size_t key_n, const char *value, size_t n)
{
	return cloche_state_set(q->state, q->part, key, key_n, value, n, q->err);
}

/* Set NAME VALUE, or any number of NAME=VALUE. */
static int do_set_env(struct request *q)
{
	int r = 0;

	if (q->v[1] && !q->v[2] && !strchr(q->v[0], '='))
		return state_set(q, q->v[0], strlen(q->v[0]), q->v[1], strlen(q->v[1]));
	for (size_t i = 0; q->v[i]; i++)
		if (strcspn(q->v[i], "=") == 0 || !strchr(q->v[i], '='))
			return wrong_usage(q->err, "for example: cloche env ID set LANG=C.UTF-8",
				"env: a variable is NAME=VALUE, not \"%s\"", q->v[i]);
	for (size_t i = 0; r == 0 && q->v[i]; i++) {
		const char *equals = strchr(q->v[i], '=');

		r = state_set(
			q, q->v[i], (size_t)(equals - q->v[i]), equals + 1, strlen(equals + 1));
	}
	return r;
}

static int set_from_input(struct request *q, const char *key)
{
	char *value;
	size_t n;
	int failure = read_whole(STDIN_FILENO, MAX_VALUE, &value, &n), r;

	if (failure)
		r = wrong_usage(
			q->err, NULL, "standard input cannot be read: %s", strerror(failure));
	else
		r = state_set(q, key, strlen(key), value, n);
	free(value);
	return r;
}

static int do_set_key(struct request *q)
{
	if (!q->v[1] || strcmp(q->v[1], "-") == 0)
		return set_from_input(q, q->v[0]);
	return state_set(q, q->v[0], strlen(q->v[0]), q->v[1], strlen(q->v[1]));
}

static int state_do_remove(struct request *q)
{
	int r = 0;

	for (size_t i = 0; r == 0 && q->v[i]; i++)
		r = cloche_state_remove(q->state, q->part, q->v[i], strlen(q->v[i]), q->err);
	return r;
}

static int do_clear(struct request *q)
{
	return cloche_state_clear(q->state, q->err);
}

/* A pair whose key is not UTF-8 cannot be a member of its own. */
static bool add_pair(struct request *q, const void *key, size_t key_n, json_t *value)
{
	json_t *name = json_stringn(key, key_n), *other = value;

	if (name) {
		json_decref(name);
		return json_object_setn_new_nocheck(q->doc, key, key_n, value) == 0;
	}
	if (json_is_string(value))
		other = json_pack("{s:o}", "value", value);
	name_to_json(other, "key", key, key_n);
	return json_array_append_new(q->others, other) == 0;
}

static bool list_pair(const void *key, size_t key_n, const void *value, size_t n, void *user)
{
	struct request *q = user;

	if (q->o->null_ends)
		q->ok = put(STDOUT_FILENO, key, key_n) && put(STDOUT_FILENO, "=", 1) &&
			put(STDOUT_FILENO, value, n) && put(STDOUT_FILENO, "", 1);
	else if (q->o->json)
		q->ok = add_pair(q, key, key_n, text_or_bytes("value", value, n));
	else {
		name_print(key, key_n);
		putchar('=');
		name_print(value, n);
		putchar('\n');
	}
	return q->ok;
}

static bool list_key(const void *key, size_t key_n, const void *value, size_t n, void *user)
{
	struct request *q = user;

	if (q->o->null_ends)
		q->ok = put(STDOUT_FILENO, key, key_n) && put(STDOUT_FILENO, "", 1);
	else if (q->o->json)
		q->ok = json_array_append_new(q->doc, text_or_bytes("key", key, key_n)) == 0;
	else {
		name_print(key, key_n);
		putchar('\n');
	}
	return q->ok;
}

static int state_list(struct request *q, cloche_state_fn fn, json_t *doc)
{
	int r;

	q->doc = doc;
	q->others = json_array();
	r = cloche_state_list(q->state, q->part, fn, q, q->err);
	/* No key is empty. */
	if (json_array_size(q->others) > 0)
		q->ok = json_object_set(doc, "", q->others) == 0 && q->ok;
	if (r == 0 && q->ok && q->o->json)
		q->ok = json_print(json_incref(doc));
	json_decref(q->others);
	json_decref(doc);
	return r < 0 ? r : state_finish(q);
}

static int state_do_list(struct request *q)
{
	return state_list(q, list_pair, json_object());
}

static int do_keys(struct request *q)
{
	return state_list(q, list_key, json_array());
}

struct operation {
	const char *name;
	int least, most; /* operands; -1: any number */
	const char *operands;
	int (*fn)(struct request *q);
};

static const struct operation env_operations[] = {
	{"get", 1, 1, "NAME", do_get},
	{"set", 1, -1, "NAME=VALUE...", do_set_env},
	{"unset", 1, -1, "NAME...", state_do_remove},
	{"list", 0, 0, "", state_do_list},
	{0},
};

static const struct operation kv_operations[] = {
	{"get", 1, 1, "KEY", do_get},
	{"set", 1, 2, "KEY [VALUE|-]", do_set_key},
	{"rm", 1, -1, "KEY...", state_do_remove},
	{"keys", 0, 0, "", do_keys},
	{"list", 0, 0, "", state_do_list},
	{"clear", 0, 0, "", do_clear},
	{0},
};

/* Return NULL and fill err on failure. */
static const struct operation *state_find_operation(const struct command *command,
	const struct operation *op, const struct operands *operands, cloche_err *err)
{
	const char *name = operands->n > 1 ? operands->v[1] : "";
	int n = operands->n - 2;

	while (op->name && strcmp(op->name, name) != 0)
		op++;
	if (op->name && n >= op->least && (op->most < 0 || n <= op->most))
		return op;
	if (op->name)
		wrong_usage(err, NULL, "%s: usage: cloche %s ID %s%s%s", command->name,
			command->name, op->name, *op->operands ? " " : "", op->operands);
	else if (*name)
		wrong_usage(err, NULL,
			"%s: unknown operation \"%s\"; \"cloche %s --help\" lists them",
			command->name, name, command->name);
	else
		wrong_usage(err, NULL,
			"%s: which operation in which sandbox? \"cloche %s --help\" lists them",
			command->name, command->name);
	return NULL;
}

static int state_run(const struct command *command, const struct operation *all, struct request *q,
	const struct operands *operands)
{
	const struct operation *op = state_find_operation(command, all, operands, q->err);
	_cleanup_(instance_freep) cloche_instance *instance = NULL;
	int r;

	if (!op)
		return -CLOCHE_E_USAGE;
	r = options_check_operation(command, operands, op->name, q->err);
	if (r < 0)
		return r;
	q->v = operands->v + 2;
	q->ok = true;
	r = cloche_instance_open(operands->v[0], &instance, q->err);
	if (r == 0)
		r = cloche_state_open(instance, &q->state, q->err);
	if (r == 0)
		r = op->fn(q);
	cloche_state_close(q->state);
	return r;
}

static int main_env(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct request q = {.part = CLOCHE_STATE_ENV, .o = ctx, .err = err};

	return state_run(&command_env, env_operations, &q, operands);
}

static int main_kv(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct request q = {.part = CLOCHE_STATE_STORAGE, .o = ctx, .err = err};

	return state_run(&command_kv, kv_operations, &q, operands);
}

const struct command command_env = {
	.name = "env",
	.summary = "variables that a sandbox's later commands see",
	.synopsis = "ID OPERATION [OPTIONS] ...",
	.text = "Operations:\n"
		"  get NAME              its value; exit status 1 if it is not set\n"
		"  set NAME=VALUE...     also: set NAME VALUE\n"
		"  unset NAME...         also what \"cloche create\" set; no error if not set\n"
		"  list                  all that were set here, NAME=VALUE\n"
		"Every command that starts afterwards has these variables. They override those of\n"
		"\"cloche create -e\"; variables of a command itself (exec -e) override both.\n"
		"\n"
		"  cloche env dev set NODE_ENV=test\n"
		"  cloche exec dev -- sh -c 'echo $NODE_ENV'",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct state_options){0},
	.run = main_env,
};

const struct command command_kv = {
	.name = "kv",
	.summary = "keys and values that are kept with a sandbox",
	.synopsis = "ID OPERATION [OPTIONS] ...",
	.text = "Operations:\n"
		"  get KEY               its value; exit status 1 if there is none\n"
		"  set KEY [VALUE|-]     without VALUE, or with -, from standard input\n"
		"  rm KEY...             no error if one is not there\n"
		"  keys                  in the order in which they came\n"
		"  list                  all, KEY=VALUE\n"
		"  clear                 removes all\n"
		"A key has at most 4096 bytes, a value 16 MiB, all of them 256 MiB. The inside of\n"
		"the sandbox does not see them.\n"
		"\n"
		"  cloche kv dev set step 3\n"
		"  cloche kv dev set result - <result.json",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct state_options){0},
	.run = main_kv,
};
