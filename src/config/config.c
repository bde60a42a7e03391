/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the file is read into libyaml's document tree and walked with a table of the
 * keys that each mapping may have; cloche-config(5) describes them. Everything unknown is an error
 * with its line: a mistyped key must not silently grant less isolation than was meant. */
#include "config/config.h"
#include "base/fd.h"
#include "base/near.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_VARIABLE "ANTHROPIC_MODEL"

enum { CONFIG_MAX = 1 << 20 };

int config_bad(struct config *c, const yaml_node_t *at, const char *what)
{
	return err_set(c->err, E_CONFIG, "%s:%zu:%zu: %s", c->file, at->start_mark.line + 1,
		at->start_mark.column + 1, what);
}

yaml_node_t *config_node(struct config *c, int index)
{
	return yaml_document_get_node(&c->doc, index);
}

struct str config_scalar(const yaml_node_t *n)
{
	return n->type == YAML_SCALAR_NODE ? str_make(n->data.scalar.value, n->data.scalar.length)
					   : STR_NULL;
}

bool config_is_tagged(const yaml_node_t *n, const char *tag)
{
	return n->tag && strcmp((const char *)n->tag, tag) == 0;
}

/* Configurations of repositories write "!secret" and "!secret?" for it. */
bool config_is_from_caller(const yaml_node_t *n)
{
	return config_is_tagged(n, "!env") || config_is_tagged(n, "!secret") ||
	       config_is_tagged(n, "!secret?");
}

bool config_is_null(const yaml_node_t *n)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};

	if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
		(n->tag && n->tag[0] == '!'))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(config_scalar(n), str_from(words[i])))
			return true;
	return false;
}

int config_value(struct config *c, const yaml_node_t *n, char **ret)
{
	_cleanup_(freep) char *text = NULL;
	char stand_in[SECRETS_STAND_IN + 1];
	const char *value;

	if (n->type != YAML_SCALAR_NODE)
		return config_bad(c, n, "expected a plain value");
	if (config_is_null(n))
		return config_bad(c, n, "the value is missing (\"\" is an empty one)");
	text = str_dup(config_scalar(n));
	if (!text)
		return err_nomem(c->err);
	if (strlen(text) != n->data.scalar.length)
		return config_bad(c, n, "a value cannot hold a NUL");
	if (config_is_from_caller(n)) {
		value = secure_getenv(text);
		if (!value && c->sb->offline) {
			secrets_stand_in(stand_in);
			value = stand_in;
		}
		if (!value)
			return err_set(c->err, E_CONFIG,
				"%s:%zu: the environment variable %s is not set", c->file,
				n->start_mark.line + 1, text);
		free(TAKE_PTR(text));
		text = strdup(value);
		if (!text)
			return err_nomem(c->err);
	} else if (n->tag && n->tag[0] == '!') {
		return config_bad(c, n, "unknown tag: use !env, !secret or !secret?");
	}
	*ret = TAKE_PTR(text);
	return 0;
}

static int config_entries(struct config *c, yaml_node_t *map, const struct config_kind *kind);

static int config_read_key(
	struct config *c, yaml_node_t *value, const struct config_key *key, void *into)
{
	if (key->option)
		return config_read_option(c, value, key->option);
	if (key->kind)
		return config_entries(c, value, key->kind);
	return key->read(c, value, into ? (char *)into + key->at : NULL);
}

/* What people write who know another tool, and the key that does it here. */
static const char *config_other_name(struct str name)
{
	static const struct {
		const char *other, *here;
	} names[] = {{"environment", "env"}, {"cpu", "cpus"}, {"hosts", "scopes"},
		{"tmpfs", "tmpfs_size"}, {"volumes", "mounts"}, {"publish", "ports"},
		{"dns", "upstream_dns"}, {"model", "default_model"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, str_from(names[i].other)))
			return names[i].here;
	return NULL;
}

static bool config_has_key(const struct config_key *keys, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(keys[i].name, name) == 0)
			return true;
	return false;
}

static int config_unknown_key(
	struct config *c, const yaml_node_t *at, const struct config_key *keys, size_t n)
{
	static const char *const rules[] = {"allowlist", "domains", "url_prefixes"};
	struct str name = str_prefix(config_scalar(at), 64);
	const char *other = config_other_name(name);
	struct near best = {0};

	err_set(c->err, E_CONFIG, "%s:%zu:%zu: unknown key \"%.*s\"", c->file,
		at->start_mark.line + 1, at->start_mark.column + 1, STR_FMT(name));
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (str_eq(name, str_from(rules[i]))) {
			err_hint(c->err,
				"rules are in network-allowlist.yaml, beside this file, or hosts "
				"below allow");
			return -E_CONFIG;
		}
	for (size_t i = 0; i < n; i++)
		near_try(name, keys[i].name, &best);
	if (config_has_key(keys, n, other))
		err_hint(c->err, "use %s", other);
	else if (best.name)
		err_hint(c->err, "did you mean %s?", best.name);
	else
		err_hint(c->err,
			"cloche-config(5) lists the keys; other options are for the command "
			"line alone");
	return -E_CONFIG;
}

int config_find_key(struct config *c, const yaml_node_t *name, const struct config_key *keys,
	size_t n, uint64_t *seen)
{
	size_t i = 0;

	while (i < n && !str_eq(config_scalar(name), str_from(keys[i].name)))
		i++;
	if (i == n)
		return config_unknown_key(c, name, keys, n);
	if (*seen & (UINT64_C(1) << i))
		return config_bad(c, name, "this key is given twice");
	*seen |= UINT64_C(1) << i;
	return (int)i;
}

int config_walk(
	struct config *c, yaml_node_t *map, const struct config_key *keys, size_t n, void *into)
{
	uint64_t seen = 0;

	if (map->type != YAML_MAPPING_NODE)
		return config_bad(c, map, "expected a mapping (name: value)");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		yaml_node_t *value = config_node(c, p->value);
		int i = config_find_key(c, config_node(c, p->key), keys, n, &seen), r;

		if (i < 0)
			return i;
		if (config_is_left_out(&keys[i], value) || keys[i].turn != c->turn)
			continue;
		r = config_read_key(c, value, &keys[i], into);
		if (r < 0)
			return r;
	}
	return 0;
}

static int config_entry(
	struct config *c, yaml_node_t *key, yaml_node_t *value, const struct config_kind *kind)
{
	_cleanup_(freep) char *name = NULL;
	_cleanup_(freep) void *entry = calloc(1, kind->size);
	int r = entry ? config_value(c, key, &name) : err_nomem(c->err);

	if (r == 0)
		r = config_walk(c, value, kind->keys, kind->n, entry);
	if (r == 0)
		r = kind->add(c, value, name, entry);
	if (entry)
		kind->done(entry);
	return r < 0 && name ? err_wrap(c->err, r, "%s %s", kind->what, name) : r;
}

static int config_entries(struct config *c, yaml_node_t *map, const struct config_kind *kind)
{
	int r = 0;

	if (map->type != YAML_MAPPING_NODE)
		return config_bad(c, map, kind->expected);
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++)
		r = config_entry(c, config_node(c, p->key), config_node(c, p->value), kind);
	return r;
}

void config_text_wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

int config_strings(struct config *c, yaml_node_t *value, void *into)
{
	char ***ret = into;

	if (value->type != YAML_SEQUENCE_NODE)
		return config_bad(c, value, "expected a list");
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		i < value->data.sequence.items.top; i++) {
		char *text = NULL;
		int r = config_value(c, config_node(c, *i), &text);

		if (r < 0)
			return r;
		if (strv_take(ret, text) < 0)
			return err_nomem(c->err);
	}
	return 0;
}

int config_bool(struct config *c, yaml_node_t *value, void *into)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};
	bool *ret = into;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (str_ieq(config_scalar(value), str_from(yes[i]))) {
			*ret = true;
			return 0;
		}
		if (str_ieq(config_scalar(value), str_from(no[i]))) {
			*ret = false;
			return 0;
		}
	}
	return config_bad(c, value, "expected true or false");
}

/* Whether p's name also occurs before p. There are few variables. */
static bool is_repeated(struct config *c, const yaml_node_t *map, const yaml_node_pair_t *p)
{
	struct str name = config_scalar(config_node(c, p->key));

	for (yaml_node_pair_t *q = map->data.mapping.pairs.start; q < p; q++)
		if (str_eq(config_scalar(config_node(c, q->key)), name))
			return true;
	return false;
}

/* Whether the value is a variable that may be missing, and is. */
static bool is_left_out(const yaml_node_t *n)
{
	_cleanup_(freep) char *name =
		config_is_tagged(n, "!secret?") ? str_dup(config_scalar(n)) : NULL;

	return name && !secure_getenv(name);
}

/* Whether pass_env, anywhere in the file, names this variable and the caller has it. Then pass_env
 * wins. */
static bool config_passes(struct config *c, const char *name)
{
	yaml_node_t *root = yaml_document_get_root_node(&c->doc);

	if (root->type != YAML_MAPPING_NODE || !secure_getenv(name))
		return false;
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
		p++) {
		yaml_node_t *names = config_node(c, p->value);

		if (!str_eq(config_scalar(config_node(c, p->key)), STR("pass_env")) ||
			names->type != YAML_SEQUENCE_NODE)
			continue;
		for (yaml_node_item_t *i = names->data.sequence.items.start;
			i < names->data.sequence.items.top; i++)
			if (str_eq(config_scalar(config_node(c, *i)), str_from(name)))
				return true;
	}
	return false;
}

static int read_env(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping of variables");
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		p < value->data.mapping.pairs.top; p++) {
		_cleanup_(freep) char *name = NULL, *text = NULL;
		int r = config_value(c, config_node(c, p->key), &name);

		if (r == 0 && is_repeated(c, value, p))
			r = config_bad(c, config_node(c, p->key), "this variable is given twice");
		if (r == 0 && is_left_out(config_node(c, p->value)))
			continue;
		if (r == 0)
			r = config_value(c, config_node(c, p->value), &text);
		if (r == 0 && !config_passes(c, name))
			r = cloche_sandbox_set_env(c->sb, name, text, c->err);
		if (r == 0 && config_is_from_caller(config_node(c, p->value)))
			r = sandbox_redact(c->sb, text, c->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_pass_env(struct config *c, yaml_node_t *value, void *into)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = config_strings(c, value, &names);

	for (size_t i = 0; r == 0 && names && names[i]; i++) {
		const char *host = secure_getenv(names[i]);

		if (host)
			r = cloche_sandbox_set_env(c->sb, names[i], host, c->err);
	}
	return r;
}

int config_text(struct config *c, yaml_node_t *value, void *into)
{
	char **ret = into, *text;
	int r = config_value(c, value, &text);

	if (r < 0)
		return r;
	free(*ret);
	*ret = text;
	return 0;
}

static int read_network(struct config *c, yaml_node_t *value, void *into)
{
	bool on = true;
	int r = config_bool(c, value, &on);

	if (r < 0)
		return r;
	if (!on)
		c->sb->net = SANDBOX_NET_NONE;
	else if (c->sb->net == SANDBOX_NET_AUTO)
		c->sb->net = SANDBOX_NET_GATEWAY;
	return 0;
}

static const struct config_key network_keys[] = {
	{"sandbox_enabled", read_network, config_ask_network},
};

/* As Airut's service has it. */
static int read_network_map(struct config *c, yaml_node_t *value, void *into)
{
	return config_walk(c, value, network_keys, ARRAY_SIZE(network_keys), into);
}

static int ask_network_map(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	return config_ask_walk(c, value, network_keys, ARRAY_SIZE(network_keys));
}

/* The agents of which Airut knows take their model from a variable. */
static int read_model(struct config *c, yaml_node_t *value, void *into)
{
	_cleanup_(freep) char *model = NULL;
	int r = config_plain(c, value, &model);

	if (r < 0 || config_passes(c, MODEL_VARIABLE))
		return r;
	return cloche_sandbox_set_env(c->sb, MODEL_VARIABLE, model, c->err);
}

/* Reads a text, as the option takes it, or a list. */
static int read_dns(struct config *c, yaml_node_t *value, void *into)
{
	_cleanup_(strv_freep) char **servers = NULL;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	struct cloche_err why = CLOCHE_ERR_INIT;
	char *one = NULL;
	int r, e = 0;

	if (value->type == YAML_SEQUENCE_NODE) {
		r = config_strings(c, value, &servers);
	} else {
		r = config_value(c, value, &one);
		if (r == 0 && strv_take(&servers, one) < 0)
			r = err_nomem(c->err);
	}
	for (size_t i = 0; e == 0 && servers && servers[i]; i++)
		e = buf_printf(&text, "%s%s", i > 0 ? "," : "", servers[i]);
	if (e == -E2BIG)
		return config_bad(c, value, "expected no more than a few servers");
	if (r < 0 || e < 0 || !buf_cstr(&text))
		return r < 0 ? r : err_nomem(c->err);
	return sandbox_set_upstream_dns(c->sb, buf_data(&text), &why) < 0
		       ? config_bad(c, value, why.message)
		       : 0;
}

static int config_place(struct config *c, yaml_node_t *value, void *into)
{
	_cleanup_(freep) char *place = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = config_value(c, value, &place);

	if (r < 0 || sandbox_is_settled(c->sb, "place"))
		return r;
	return sandbox_set_place(c->sb, place, &why) < 0 ? config_bad(c, value, why.message) : 0;
}

static const struct config_key top_keys[] = {
	{"env", read_env, config_ask_env},
	{"container_env", read_env, config_ask_env},
	{"pass_env", read_pass_env, config_ask_pass_env},
	{"masked_secrets", .kind = &config_masked},
	{"signing_credentials", .kind = &config_signing},
	{"github_app_credentials", .kind = &config_github},
	{"network_sandbox", read_network, config_ask_network},
	{"network", read_network_map, ask_network_map},
	{"default_model", read_model, config_ask_nothing},
	{"upstream_dns", read_dns, NULL},
	{"place", config_place, NULL},
	{"resource_limits", config_read_limits, config_ask_limits},
	{"limits", config_read_limits, config_ask_limits},
	{"image", config_read_image, NULL, .turn = 1},
};

static int read_top(struct config *c)
{
	yaml_node_t *root = yaml_document_get_root_node(&c->doc);
	struct config_key keys[CONFIG_MAX_KEYS];
	size_t n = ARRAY_SIZE(top_keys);
	int r = 0;

	if (!root || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		return 0;
	memcpy(keys, top_keys, sizeof(top_keys));
	n += config_option_keys(keys + n, CONFIG_MAX_KEYS - n);
	if (c->asks)
		return config_ask_walk(c, root, keys, n);
	for (c->turn = 0; r == 0 && c->turn < CONFIG_TURNS; c->turn++)
		r = config_walk(c, root, keys, n, NULL);
	return r < 0 ? r : config_tell(c, root, keys, n);
}

static int config_refuse_text(struct config *c, const yaml_parser_t *parser)
{
	return err_set(c->err, E_CONFIG, "%s:%zu:%zu: %s", c->file, parser->problem_mark.line + 1,
		parser->problem_mark.column + 1, parser->problem ? parser->problem : "not YAML");
}

/* What stood in a second document would not be obeyed, and nobody would know. */
static int config_read_end(struct config *c, yaml_parser_t *parser)
{
	yaml_document_t rest;
	yaml_node_t *root;
	int r;

	if (!yaml_parser_load(parser, &rest))
		return config_refuse_text(c, parser);
	root = yaml_document_get_root_node(&rest);
	r = root ? config_bad(c, root, "expected one document") : 0;
	yaml_document_delete(&rest);
	return r;
}

static int read_document(struct config *c, struct str text)
{
	yaml_parser_t parser;
	int r;

	if (!yaml_parser_initialize(&parser))
		return err_nomem(c->err);
	yaml_parser_set_input_string(
		&parser, (const unsigned char *)(text.n ? text.p : ""), text.n);
	if (yaml_parser_load(&parser, &c->doc)) {
		r = config_read_end(c, &parser);
		r = r < 0 ? r : read_top(c);
		yaml_document_delete(&c->doc);
	} else {
		r = config_refuse_text(c, &parser);
	}
	yaml_parser_delete(&parser);
	return r;
}

int config_read(cloche_sandbox *sb, const struct found *found, const char *name, struct str text,
	struct cloche_err *err)
{
	struct config c = {.sb = sb, .found = found, .file = name, .err = err};

	return read_document(&c, text);
}

int config_ask(const char *name, struct str text, struct asks *ret, cloche_allowlist *allow,
	struct cloche_err *err)
{
	struct config c = {.asks = ret, .allow = allow, .file = name, .err = err};

	return read_document(&c, text);
}

static int config_refuse_own(const char *path, const char *why, struct cloche_err *err)
{
	err_set(err, E_DENIED, "%s is not obeyed: %s", path, why);
	err_hint(err, "--no-config goes on without it");
	return -E_DENIED;
}

/* Returns 1 if there is such a file. */
static int config_open_own(const char *path, int *ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	/* Somebody else's home is none. */
	if (fd < 0 &&
		(errno == ENOENT || errno == ENOTDIR || (errno == EACCES && stat(path, &st) < 0)))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return config_refuse_own(path, "it is not a regular file", err);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return config_refuse_own(path, "it belongs to another user", err);
	if (st.st_mode & S_IWOTH)
		return config_refuse_own(path, "everybody can write to it (chmod o-w)", err);
	*ret = TAKE_FD(fd);
	return 1;
}

static int config_load_own(cloche_sandbox *sb, struct cloche_err *err)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(CONFIG_MAX);
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	if (fs_config_path("config.yaml", &path) < 0)
		return err_nomem(err);
	r = path ? config_open_own(path, &fd, err) : 0;
	if (r <= 0)
		return r;
	r = fd_read_to_end(fd, &text);
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "%s is larger than %d bytes", path, CONFIG_MAX);
	if (r < 0)
		return err_sys(err, -r, "read %s", path);
	return config_read(sb, NULL, path, buf_str(&text), err);
}

int cloche_sandbox_load_config(cloche_sandbox *sb, const char *yaml_file, cloche_err *err)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(CONFIG_MAX);
	int r;

	sb->always |= !yaml_file;
	if (!yaml_file)
		return config_load_own(sb, err);
	r = fd_read_file(AT_FDCWD, yaml_file, &text, err);
	if (r < 0) {
		err_wrap(err, r, "configuration");
		return r;
	}
	return config_read(sb, NULL, yaml_file, buf_str(&text), err);
}
