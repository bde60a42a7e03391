/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: keys that are options are made from the table of options, and their values
 * are read as the option's own are. What a project says is a proposal even after consent: its file
 * lifts no limit that holds already, and a path in it never leads through a link that somebody, a
 * room above all, has put into the project (INV-NAMED-ONCE). */
#include "base/fd.h"
#include "config/config.h"
#include "config/found.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* An option's own message names the option. Its hint is kept, and that somebody has interrupted it.
 */
static int config_bad_option(struct config *c, const yaml_node_t *at, const struct cloche_err *why)
{
	int r = config_bad(c, at, why->message);

	if (why->hint[0])
		err_hint(c->err, "%s", why->hint);
	if (why->code != E_CANCELLED && why->code != E_NO_MEMORY)
		return r;
	if (c->err)
		c->err->code = why->code;
	return -why->code;
}

int config_plain(struct config *c, const yaml_node_t *n, char **ret)
{
	if (n->type == YAML_SCALAR_NODE && n->tag && n->tag[0] == '!')
		return config_bad(c, n,
			"the value of an option stands as it is: !env is for env, masked_secrets "
			"and other credentials, place and upstream_dns");
	return config_value(c, n, ret);
}

static int config_set_option(
	struct config *c, const yaml_node_t *at, const struct sandbox_option *o, const char *text)
{
	uint64_t *number = c->found ? option_number(c->sb, o) : NULL;
	uint64_t before = number ? *number : 0;
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (option_set(c->sb, o, text, &why) < 0)
		return config_bad_option(c, at, &why);
	/* 0 is no limit. */
	if (before && (*number == 0 || *number > before))
		*number = before;
	return 0;
}

/* --- paths --- */

static int config_bad_mount(
	struct config *c, const yaml_node_t *at, const char *name, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "mount %.300s: %s", name, why);
	return config_bad(c, at, text);
}

/* Opens what lies in the project, through no link, and stores what is to be mounted: its path and
 * `rest`. */
static int config_open_mount(struct config *c, const yaml_node_t *at, const char *name,
	const char *rest, struct stat *ret_st, char **ret)
{
	char path[PATH_MAX];
	int fd, r;

	if (!fs_resolve("", name, path))
		return config_bad_mount(c, at, name,
			"it leads out of the project; name what is elsewhere from / or ~/");
	fd = fs_open_beneath(c->found->fd, path, O_PATH);
	r = fd < 0 ? fd : fstat(fd, ret_st) < 0 ? -errno : 0;
	fd_close(fd);
	if (r == 0 && S_ISLNK(ret_st->st_mode))
		r = -ELOOP;
	if (r == -ENOENT)
		return config_bad_mount(c, at, name, "it is not there");
	if (r < 0)
		return config_bad_mount(c, at, name,
			"it cannot be opened; what lies in the project is not found through links");
	if (asprintf(ret, "%s%s%s%s", c->found->dir, path[0] ? "/" : "", path, rest) >= 0)
		return 0;
	*ret = NULL;
	return err_nomem(c->err);
}

/* Mounts, for a file that was found, SRC[:DST[:ro]]. */
static int config_mount(
	struct config *c, const yaml_node_t *at, const struct sandbox_option *o, const char *text)
{
	size_t n = strcspn(text, ":");
	_cleanup_(freep) char *name = strndup(text, n), *whole = NULL;
	const char *below;
	struct stat st, mounted;
	int r, fd;

	if (!name)
		return err_nomem(c->err);
	below = name[0] == '/' ? fs_below(name, c->found->dir) : name;
	if (!below)
		return config_set_option(c, at, o, text);
	r = config_open_mount(c, at, below, text + n, &st, &whole);
	if (r == 0)
		r = config_set_option(c, at, o, whole);
	if (r < 0)
		return r;
	/* The option has found it by its name once more. */
	fd = c->sb->mounts[c->sb->mounts_n - 1].fd;
	if (fd < 0 || fstat(fd, &mounted) < 0 || mounted.st_dev != st.st_dev ||
		mounted.st_ino != st.st_ino)
		return config_bad_mount(c, at, name, "it was replaced while it was looked at");
	return 0;
}

/* Whether a value is a path that depends on the directory. */
static bool config_is_relative(const struct sandbox_option *o, const char *text)
{
	if (text[0] == '/')
		return false;
	if (o->type == OPTION_TEXTS) /* the name of a tool is none */
		return strchr(text, '/');
	return strcmp(text, "host") != 0 && !str_starts(str_from(text), STR("image:"));
}

static int config_set_path(
	struct config *c, const yaml_node_t *at, const struct sandbox_option *o, const char *text)
{
	_cleanup_(freep) char *home = NULL, *whole = NULL;

	if (str_starts(str_from(text), STR("~/"))) {
		home = fs_home();
		if (!home)
			return config_bad(c, at, "you have no home directory");
		whole = fs_join(home, text + 2);
		if (!whole)
			return err_nomem(c->err);
		text = whole;
	}
	if (c->found && o->type == OPTION_MOUNTS)
		return config_mount(c, at, o, text);
	if (c->found && config_is_relative(o, text))
		return config_bad(c, at, "name it from / or ~/");
	return config_set_option(c, at, o, text);
}

/* --- values --- */

static int config_item(struct config *c, const yaml_node_t *n, const struct sandbox_option *o)
{
	_cleanup_(freep) char *text = NULL;
	int r;

	if (n->type != YAML_SCALAR_NODE)
		return config_bad(c, n,
			option_is_list(o) ? "expected a plain value, or a list of them"
					  : "expected a plain value");
	r = config_plain(c, n, &text);
	if (r < 0)
		return r;
	return o->is_path ? config_set_path(c, n, o, text) : config_set_option(c, n, o, text);
}

int config_read_option(struct config *c, yaml_node_t *value, const struct sandbox_option *o)
{
	int r = 0;

	if (sandbox_is_settled(c->sb, o->name))
		return 0;
	if (option_is_flag(o))
		return config_bool(c, value, option_at(c->sb, o));
	if (!option_is_list(o) || value->type != YAML_SEQUENCE_NODE)
		return config_item(c, value, o);
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		r == 0 && i < value->data.sequence.items.top; i++)
		r = config_item(c, config_node(c, *i), o);
	return r;
}

int config_read_image(struct config *c, yaml_node_t *value, void *into)
{
	const struct sandbox_option *root = option_find("root");
	_cleanup_(freep) char *name = NULL, *whole = NULL;
	int r = config_plain(c, value, &name);

	if (r < 0 || sandbox_is_settled(c->sb, "root"))
		return r;
	if (asprintf(&whole, "image:%s", name) < 0) {
		whole = NULL;
		return err_nomem(c->err);
	}
	return config_set_option(c, value, root, whole);
}

/* --- limits --- */

size_t config_limit_keys(struct config_key ret[static CONFIG_MAX_KEYS])
{
	static int (*const asks[])(struct config *, const struct config_key *, yaml_node_t *) = {
		[OPTION_ASK_NOTHING] = config_ask_nothing,
		[OPTION_ASK_TIMEOUT] = config_ask_timeout,
		[OPTION_ASK_NOFILE] = config_ask_nofile,
		[OPTION_ASK_RULES] = NULL,
		[OPTION_ASK_HIDE] = NULL};
	const struct sandbox_option *o;
	size_t n = 0;

	for (size_t i = 0; (o = option_row(i)) && n + 2 < CONFIG_MAX_KEYS; i++) {
		if (!o->config)
			continue;
		ret[n++] = (struct config_key){.name = o->config, .option = o, .ask = asks[o->ask]};
		/* The name on the command line does as well, but for what YAML has no "-" for. */
		if (!strchr(o->name, '-') && strcmp(o->name, o->config) != 0)
			ret[n++] = (struct config_key){
				.name = o->name, .option = o, .ask = asks[o->ask]};
	}
	return n;
}

int config_read_limits(struct config *c, yaml_node_t *value, void *into)
{
	struct config_key keys[CONFIG_MAX_KEYS];

	if (value->type == YAML_SCALAR_NODE)
		return config_read_option(c, value, option_find("limits"));
	return config_walk(c, value, keys, config_limit_keys(keys), into);
}

int config_ask_limits(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	struct config_key keys[CONFIG_MAX_KEYS];

	if (value->type == YAML_SCALAR_NODE)
		return str_eq(config_scalar(value), STR("strict"))
			       ? 0
			       : config_ask_whole(c, key, value);
	return config_ask_walk(c, value, keys, config_limit_keys(keys));
}

/* --- the table --- */

static int (*config_option_ask(const struct sandbox_option *o))(
	struct config *c, const struct config_key *key, yaml_node_t *value)
{
	switch (o->ask) {
	case OPTION_ASK_NOTHING:
		return config_ask_nothing;
	case OPTION_ASK_TIMEOUT:
		return config_ask_timeout;
	case OPTION_ASK_NOFILE:
		return config_ask_nofile;
	case OPTION_ASK_RULES:
		return config_ask_rules;
	case OPTION_ASK_HIDE:
		return config_ask_hide;
	case OPTION_ASK_WHOLE:
		break;
	}
	return option_is_flag(o) ? config_ask_flag : config_ask_whole;
}

size_t config_option_keys(struct config_key *ret, size_t most)
{
	const struct sandbox_option *o;
	size_t n = 0;

	for (size_t i = 0; (o = option_row(i)) && n < most; i++)
		if (o->file)
			ret[n++] = (struct config_key){.name = o->file,
				.option = o,
				.turn = o->turn,
				.ask = config_option_ask(o)};
	return n;
}
