/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the text is read into libyaml's document tree and walked with tables of the
 * keys that each mapping may have; cloche-driver(5) describes them. Everything unknown is an error
 * with its line, and the nearest key: a mistyped one must not silently let an agent have more. */
#include "agent/driver.h"
#include "base/buf.h"
#include "base/near.h"
#include "base/strv.h"
#include "policy/host.h"

#include <string.h>
#include <yaml.h>

struct driver_yaml {
	yaml_document_t doc;
	const char *file;
	char **base;
	struct cloche_err *err;
};

struct driver_key {
	const char *name;
	int (*read)(struct driver_yaml *y, yaml_node_t *value, void *into);
	size_t at;
	const struct driver_key *part; /* instead of read: a mapping of these keys */
};

/* The most keys of a mapping, entries of a list, and bytes of a text. */
enum { YAML_MAX_KEYS = 32, YAML_MAX_ENTRIES = 64, YAML_MAX_TEXT = 8192 };

__attribute__((format(printf, 3, 4))) static int yaml_bad(
	struct driver_yaml *y, const yaml_node_t *at, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return err_set(y->err, E_CONFIG, "%s:%zu:%zu: %s", y->file, at->start_mark.line + 1,
		at->start_mark.column + 1, what);
}

static yaml_node_t *yaml_node(struct driver_yaml *y, int index)
{
	return yaml_document_get_node(&y->doc, index);
}

/* Read a text into *into (char **), which may have one. */
static int yaml_text(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	struct str s = value->type == YAML_SCALAR_NODE
			       ? str_make(value->data.scalar.value, value->data.scalar.length)
			       : STR_NULL;
	char *text;

	if (!s.p || s.n == 0)
		return yaml_bad(y, value, "expected a text");
	if (s.n > YAML_MAX_TEXT || memchr(s.p, '\0', s.n))
		return yaml_bad(y, value, "the text is too long, or holds a NUL");
	text = str_dup(s);
	if (!text)
		return err_nomem(y->err);
	free(*(char **)into);
	*(char **)into = text;
	return 0;
}

/* The same for a path below a home: relative, and without "." and "..". */
static int yaml_path(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	int r = yaml_text(y, value, into);
	struct str rest = r == 0 ? str_from(*(char **)into) : STR_NULL;

	if (r == 0 && rest.p[0] == '/')
		return yaml_bad(y, value, "the path has to be one below the home");
	while (r == 0 && rest.n) {
		struct str part = str_next(&rest, '/');

		if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
			r = yaml_bad(y, value, "the path has to be plain, such as .name/file");
	}
	return r;
}

/* The same for a name without slashes: of a program, a directory. */
static int yaml_name(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	int r = yaml_path(y, value, into);

	return r == 0 && strchr(*(char **)into, '/') ? yaml_bad(y, value, "expected a plain name")
						     : r;
}

static bool yaml_is_variable(const char *name)
{
	return !str_is_digit(name[0]) &&
	       str_is_all(str_from(name), STR_LOWER STR_UPPER STR_DIGITS "_");
}

static int yaml_variable(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	int r = yaml_text(y, value, into);

	return r == 0 && !yaml_is_variable(*(char **)into)
		       ? yaml_bad(y, value, "expected the name of a variable")
		       : r;
}

static int yaml_host(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	int r = yaml_text(y, value, into);
	struct host host;

	return r == 0 && host_parse(str_from(*(char **)into), &host) < 0
		       ? yaml_bad(y, value, "expected the name of a host, such as api.example.com")
		       : r;
}

static int yaml_flag(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	_cleanup_(freep) char *text = NULL;
	int r = yaml_text(y, value, &text);

	if (r == 0 && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return yaml_bad(y, value, "expected true or false");
	if (r == 0)
		*(bool *)into = text[0] == 't';
	return r;
}

/* Read a list of what `one` reads, in place of what *into (char ***) has. */
static int yaml_list(struct driver_yaml *y, yaml_node_t *value, void *into,
	int (*one)(struct driver_yaml *y, yaml_node_t *value, void *into))
{
	_cleanup_(strv_freep) char **list = NULL;
	size_t n = 0;

	if (value->type != YAML_SEQUENCE_NODE)
		return yaml_bad(y, value, "expected a list, such as [one, two]");
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		i < value->data.sequence.items.top; i++) {
		char *text = NULL;
		int r = ++n > YAML_MAX_ENTRIES ? yaml_bad(y, value, "the list is too long")
					       : one(y, yaml_node(y, *i), &text);

		if (r < 0) {
			free(text);
			return r;
		}
		if (strv_take(&list, text) < 0)
			return err_nomem(y->err);
	}
	strv_free(*(char ***)into);
	*(char ***)into = TAKE_PTR(list);
	return 0;
}

static int yaml_texts(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_list(y, value, into, yaml_text);
}

static int yaml_paths(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_list(y, value, into, yaml_path);
}

static int yaml_variables(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_list(y, value, into, yaml_variable);
}

static int yaml_hosts(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_list(y, value, into, yaml_host);
}

/* Call `one` with each pair of a mapping. */
static int yaml_pairs(struct driver_yaml *y, yaml_node_t *map, void *into,
	int (*one)(struct driver_yaml *y, yaml_node_t *key, yaml_node_t *value, void *into))
{
	size_t n = 0;
	int r = 0;

	if (map->type != YAML_MAPPING_NODE)
		return yaml_bad(y, map, "expected a mapping (name: value)");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++)
		r = ++n > YAML_MAX_ENTRIES
			    ? yaml_bad(y, map, "the mapping is too large")
			    : one(y, yaml_node(y, p->key), yaml_node(y, p->value), into);
	return r;
}

/* A value that begins with "~/" is a path below the room's home. */
static int yaml_env_pair(struct driver_yaml *y, yaml_node_t *key, yaml_node_t *value, void *into)
{
	struct agent_environment *env = into;
	struct agent_env one = {0}, *grown, *old = NULL;
	int r = yaml_variable(y, key, &one.name);

	if (r == 0)
		r = yaml_text(y, value, &one.value);
	for (size_t i = 0; r == 0 && i < env->n; i++)
		if (strcmp(env->v[i].name, one.name) == 0)
			old = &env->v[i];
	grown = r == 0 && !old ? reallocarray(env->v, env->n + 1, sizeof(*grown)) : NULL;
	if (grown)
		env->v = grown;
	if (r == 0 && !old && !grown)
		r = err_nomem(y->err);
	if (r < 0) {
		free(one.name);
		free(one.value);
		return r;
	}
	one.in_home = strncmp(one.value, "~/", 2) == 0;
	if (one.in_home)
		memmove(one.value, one.value + 2, strlen(one.value) - 1);
	if (old) {
		free(old->name);
		free(old->value);
	}
	*(old ? old : &env->v[env->n++]) = one;
	return 0;
}

static int yaml_environment(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_pairs(y, value, into, yaml_env_pair);
}

static void driver_drop_files(struct agent_driver *d)
{
	for (size_t i = 0; i < d->files_n; i++) {
		free(d->files[i].path);
		free(d->files[i].text);
	}
	free(d->files);
	d->files = NULL;
	d->files_n = 0;
}

static int yaml_file_pair(struct driver_yaml *y, yaml_node_t *key, yaml_node_t *value, void *into)
{
	struct agent_driver *d = into;
	struct agent_file *grown = reallocarray(d->files, d->files_n + 1, sizeof(*grown));
	int r;

	if (!grown)
		return err_nomem(y->err);
	d->files = grown;
	grown[d->files_n] = (struct agent_file){0};
	grown += d->files_n++;
	r = yaml_path(y, key, &grown->path);
	return r < 0 ? r : yaml_text(y, value, &grown->text);
}

static int yaml_files(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	driver_drop_files(into);
	return yaml_pairs(y, value, into, yaml_file_pair);
}

static int yaml_output(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	static const struct agent_output outputs[] = {{"claude-code", claude_code_find}};
	_cleanup_(freep) char *text = NULL;
	int r = yaml_text(y, value, &text);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(outputs); i++)
		if (strcmp(outputs[i].name, text) == 0) {
			*(const struct agent_output **)into = &outputs[i];
			return 0;
		}
	return r < 0 ? r
		     : yaml_bad(y, value,
			       "cloche reads the output of claude-code alone, not \"%.64s\"", text);
}

static int yaml_base(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	return yaml_name(y, value, y->base);
}

/* --- mappings with known keys --- */

static int yaml_find_key(struct driver_yaml *y, const yaml_node_t *name,
	const struct driver_key *keys, uint32_t *seen)
{
	struct str s = name->type == YAML_SCALAR_NODE
			       ? str_make(name->data.scalar.value, name->data.scalar.length)
			       : STR_NULL;
	struct near near = {0};
	unsigned i;

	for (i = 0; keys[i].name && !str_eq(s, str_from(keys[i].name)); i++)
		near_try(s, keys[i].name, &near);
	if (!keys[i].name) {
		int r = yaml_bad(y, name, "unknown key \"%.*s\"", STR_FMT(str_prefix(s, 64)));

		if (near.name)
			err_hint(y->err, "did you mean \"%s\"?", near.name);
		return r;
	}
	if (*seen & (1U << i))
		return yaml_bad(y, name, "this key is given twice");
	*seen |= 1U << i;
	return (int)i;
}

static int yaml_walk(
	struct driver_yaml *y, yaml_node_t *map, const struct driver_key *keys, void *into)
{
	uint32_t seen = 0;
	int r = 0;

	if (map->type != YAML_MAPPING_NODE)
		return yaml_bad(y, map, "expected a mapping (name: value)");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++) {
		int i = yaml_find_key(y, yaml_node(y, p->key), keys, &seen);

		if (i < 0)
			return i;
		r = keys[i].part
			    ? yaml_walk(y, yaml_node(y, p->value), keys[i].part, into)
			    : keys[i].read(y, yaml_node(y, p->value), (char *)into + keys[i].at);
	}
	return r;
}

#define AT(member) offsetof(struct agent_key, login.member)
static const struct driver_key renew_keys[] = {
	{"url", yaml_text, AT(url)},
	{"client_id", yaml_text, AT(client_id)},
	{"client_secret", yaml_text, AT(client_secret)},
	{"client_secret_begins", yaml_text, offsetof(struct agent_key, client_secret_begins)},
	{"form", yaml_flag, AT(form)},
	{"again", yaml_text, AT(again)},
	{NULL},
};

static const struct driver_key account_keys[] = {
	{"env", yaml_variable, offsetof(struct agent_key, account_env)},
	{"member", yaml_texts, offsetof(struct agent_key, account)},
	{NULL},
};

static const struct driver_key login_keys[] = {
	{"file", yaml_path, AT(file)},
	{"lock", yaml_name, AT(lock)},
	{"token", yaml_texts, AT(token)},
	{"expires", yaml_texts, AT(expires)},
	{"refresh", yaml_texts, AT(refresh)},
	{"renew", NULL, 0, renew_keys},
	{"account", NULL, 0, account_keys},
	{NULL},
};
#undef AT

static const struct driver_key credential_keys[] = {
	{"env", yaml_variable, offsetof(struct agent_key, env)},
	{"from", yaml_variables, offsetof(struct agent_key, from)},
	{"hosts", yaml_hosts, offsetof(struct agent_key, hosts)},
	{"headers", yaml_texts, offsetof(struct agent_key, headers)},
	{"base_url", yaml_variable, offsetof(struct agent_key, base_url)},
	{"withhold", yaml_variables, offsetof(struct agent_key, withhold)},
	{"arguments", yaml_texts, offsetof(struct agent_key, arguments)},
	{"environment", yaml_environment, offsetof(struct agent_key, environment)},
	{"login", NULL, 0, login_keys},
	{NULL},
};

static void driver_drop_env(struct agent_environment *env)
{
	for (size_t i = 0; i < env->n; i++) {
		free(env->v[i].name);
		free(env->v[i].value);
	}
	free(env->v);
}

static void driver_drop_keys(struct agent_driver *d)
{
	for (size_t i = 0; i < d->keys_n; i++) {
		struct agent_key *k = &d->keys[i];

		free(k->env);
		free(k->base_url);
		login_spec_done(&k->login);
		free(k->client_secret_begins);
		driver_drop_env(&k->environment);
		free(k->account_env);
		strv_free(k->account);
		strv_free(k->from);
		strv_free(k->hosts);
		strv_free(k->headers);
		strv_free(k->withhold);
		strv_free(k->arguments);
	}
	free(d->keys);
	d->keys = NULL;
	d->keys_n = 0;
}

static int yaml_check_renewal(struct driver_yaml *y, yaml_node_t *value, const struct agent_key *k)
{
	_cleanup_(login_freep) struct login *login = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r;

	if (!k->login.url && !k->login.client_id && !k->login.client_secret)
		return 0;
	if (!k->login.file)
		return yaml_bad(y, value, "a login needs file and token");
	r = login_new(&k->login, &login, &why);
	if (r == -E_NO_MEMORY)
		return err_nomem(y->err);
	return r < 0 ? yaml_bad(y, value, "%s", why.message) : 0;
}

static int yaml_credential(struct driver_yaml *y, yaml_node_t *value, struct agent_driver *d)
{
	struct agent_key *k = reallocarray(d->keys, d->keys_n + 1, sizeof(*k));
	int r;

	if (!k)
		return err_nomem(y->err);
	d->keys = k;
	k += d->keys_n++;
	*k = (struct agent_key){0};
	r = yaml_walk(y, value, credential_keys, k);
	if (r == 0 && (!k->env || !k->hosts || !k->headers))
		r = yaml_bad(y, value, "a key needs env, hosts and headers");
	if (r == 0 && k->login.file && !k->login.token)
		r = yaml_bad(y, value, "a login needs file and token");
	if (r == 0 && !k->account_env != !k->account)
		r = yaml_bad(y, value, "an account needs env and member");
	return r < 0 ? r : yaml_check_renewal(y, value, k);
}

static int yaml_credentials(struct driver_yaml *y, yaml_node_t *value, void *into)
{
	int r = 0;

	driver_drop_keys(into);
	if (value->type != YAML_SEQUENCE_NODE)
		return yaml_bad(y, value, "expected a list of keys");
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		r == 0 && i < value->data.sequence.items.top; i++)
		r = yaml_credential(y, yaml_node(y, *i), into);
	return r;
}

#define AT(member) offsetof(struct agent_driver, member)
static const struct driver_key terminal_keys[] = {
	{"hosts", yaml_hosts, AT(terminal_hosts)},
	{"environment", yaml_environment, AT(terminal_env)},
	{"files", yaml_files, 0},
	{"copy", yaml_paths, AT(copy)},
	{NULL},
};

static const struct driver_key headless_keys[] = {
	{"output", yaml_output, AT(output)},
	{"context", yaml_name, AT(context)},
	{"arguments", yaml_texts, AT(arguments)},
	{"environment", yaml_environment, AT(headless_env)},
	{"resume", yaml_text, AT(resume)},
	{"model", yaml_text, AT(model)},
	{"effort", yaml_text, AT(effort)},
	{"max_turns", yaml_text, AT(max_turns)},
	{"system_prompt", yaml_text, AT(system_prompt)},
	{NULL},
};

static const struct driver_key driver_keys[] = {
	{"base", yaml_base, 0},
	{"title", yaml_text, AT(title)},
	{"program", yaml_name, AT(program)},
	{"install", yaml_text, AT(install)},
	{"hosts", yaml_hosts, AT(hosts)},
	{"keys", yaml_credentials, 0},
	{"every_key", yaml_flag, AT(every_key)},
	{"pass", yaml_variables, AT(pass)},
	{"no_prompts", yaml_texts, AT(no_prompts)},
	{"subcommands", yaml_texts, AT(subcommands)},
	{"outside", yaml_texts, AT(outside)},
	{"environment", yaml_environment, AT(env)},
	{"state", yaml_path, AT(state)},
	{"terminal", NULL, 0, terminal_keys},
	{"headless", NULL, 0, headless_keys},
	{NULL},
};

/* For want of memory, libyaml's loader may fail without an error. */
static int yaml_load_one(struct driver_yaml *y, yaml_parser_t *parser, yaml_document_t *ret)
{
	if (yaml_parser_load(parser, ret))
		return 0;
	if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
		return err_nomem(y->err);
	return err_set(y->err, E_CONFIG, "%s:%zu: %s", y->file, parser->problem_mark.line + 1,
		parser->problem ? parser->problem : "this is no YAML");
}

/* What stood in a second document would not be obeyed, and nobody would know. */
static int yaml_load_end(struct driver_yaml *y, yaml_parser_t *parser)
{
	yaml_document_t rest;
	yaml_node_t *root;
	int r = yaml_load_one(y, parser, &rest);

	if (r < 0)
		return r;
	root = yaml_document_get_root_node(&rest);
	r = root ? err_set(y->err, E_CONFIG, "%s:%zu: expected one document", y->file,
			   root->start_mark.line + 1)
		 : 0;
	yaml_document_delete(&rest);
	return r;
}

static int yaml_load(struct driver_yaml *y, struct str text, struct cloche_err *err)
{
	yaml_parser_t parser;
	int r;

	if (!yaml_parser_initialize(&parser))
		return err_nomem(err);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
	r = yaml_load_one(y, &parser, &y->doc);
	if (r == 0) {
		r = yaml_load_end(y, &parser);
		if (r < 0)
			yaml_document_delete(&y->doc);
	}
	yaml_parser_delete(&parser);
	return r;
}

int agent_driver_read(struct str text, const char *file, struct agent_driver *ret, char **ret_base,
	struct cloche_err *err)
{
	struct driver_yaml y = {.file = file, .base = ret_base, .err = err};
	yaml_node_t *root;
	int r = yaml_load(&y, text, err);

	if (r < 0)
		return r;
	root = yaml_document_get_root_node(&y.doc);
	r = root ? yaml_walk(&y, root, driver_keys, ret)
		 : err_set(err, E_CONFIG, "%s: the driver is empty", file);
	yaml_document_delete(&y.doc);
	return r;
}

struct agent_driver *agent_driver_free(struct agent_driver *d)
{
	static const size_t texts[] = {AT(name), AT(title), AT(program), AT(install), AT(state),
		AT(context), AT(resume), AT(model), AT(effort), AT(max_turns), AT(system_prompt)};
	static const size_t lists[] = {AT(hosts), AT(pass), AT(no_prompts), AT(subcommands),
		AT(outside), AT(terminal_hosts), AT(copy), AT(arguments)};

	if (!d)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(*(char **)(void *)((char *)d + texts[i]));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		strv_free(*(char ***)(void *)((char *)d + lists[i]));
	driver_drop_keys(d);
	driver_drop_files(d);
	driver_drop_env(&d->env);
	driver_drop_env(&d->terminal_env);
	driver_drop_env(&d->headless_env);
	free(d);
	return NULL;
}
