/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table behind provider/options.def: a description of each option and of each member of a
 * configuration. */

#include "base/json.h"
#include "sandbox/sandbox.h"

/* How a member is stored, and what a plain option does with its value. */
enum option_type {
	OPTION_NONE,   /* no member */
	OPTION_SIZE,   /* uint64_t, bytes */
	OPTION_CPUS,   /* uint64_t, thousandths of a CPU */
	OPTION_COUNT,  /* uint64_t */
	OPTION_TIME,   /* uint64_t, milliseconds */
	OPTION_FLAG,   /* bool */
	OPTION_TEXT,   /* char *, on the heap */
	OPTION_TEXTS,  /* char **, as in base/strv.h */
	OPTION_FD,     /* int, borrowed */
	OPTION_OPENED, /* int, a descriptor of its own; -1: none */
	OPTION_ROOT,   /* enum room_root */
	OPTION_NET,    /* enum sandbox_net */
	OPTION_MOUNTS,
	OPTION_ALLOWLIST,
	OPTION_SECRETS,
	OPTION_TYPES
};

/* Which part of a key in a configuration file that was found, not named, needs the user's
 * consent. */
enum option_ask {
	OPTION_ASK_WHOLE, /* all of it */
	OPTION_ASK_NOTHING,
	OPTION_ASK_TIMEOUT, /* a higher value than the default for agents */
	OPTION_ASK_NOFILE,  /* a higher value than the user's own limit */
	OPTION_ASK_RULES,   /* all of it, in the words for rules of an allowlist */
	OPTION_ASK_HIDE,    /* what shows a file that would be hidden */
};

struct sandbox_option {
	union {
		cloche_option shown;
		struct {
			const char *name, *argument, *help, *commands;
			char letter;
		};
	};
	const char *key; /* the member's name in cloche_sandbox; NULL: none */
	enum option_type type;
	size_t offset; /* in cloche_sandbox */
	/* Apply the option; NULL: the value is parsed by the type. */
	int (*set)(cloche_sandbox *sb, const char *value, cloche_err *err);
	bool unset;           /* set takes NULL, for none */
	uint64_t least, most; /* limits of the value; most is only for OPTION_COUNT */
	const char *config;   /* key under resource_limits in a configuration file */
	const char *file;     /* key of its own there; both NULL: for the command line alone */
	unsigned turn;        /* there, 1 and 2 are read after what they depend on */
	bool is_path;         /* there, the value begins with a path */
	bool is_list;         /* as option_is_list(), if the type does not say so */
	enum option_ask ask;
	const char
		*record; /* key in the record; NULL: it is left out, or sandbox_describe knows it */
};

/* What can be done with a member of each type (option_types.c); NULL: nothing. */
struct option_ops {
	/* Give copy the member of sb. Return 0 or -errno. */
	int (*copy)(const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o);
	void (*free)(cloche_sandbox *sb, const struct sandbox_option *o);
	/* For store.h. get returns 0, -EINVAL, -ENOMEM, or -EPROTO for what another version has
	 * written; secrets: it adds the names of secrets there. */
	json_t *(*put)(const cloche_sandbox *sb, const struct sandbox_option *o);
	int (*get)(const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o,
		char ***secrets);
	/* For the record (sandbox_describe). */
	json_t *(*describe)(const cloche_sandbox *sb, const struct sandbox_option *o);
	/* Read the option's value. */
	int (*set)(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
		struct cloche_err *err);
	/* Take the setting away. */
	void (*unset)(cloche_sandbox *sb, const struct sandbox_option *o);
};
const struct option_ops *option_ops(const struct sandbox_option *o);
/* Return texts as put does. */
json_t *store_texts(char *const *texts);

/* Return row i, also those without a name; NULL at the end. */
const struct sandbox_option *option_row(size_t i);
/* Return the option with this name, or NULL. */
const struct sandbox_option *option_find(const char *name);
/* Return whether it may be given several times, so that each value adds to the others. */
bool option_is_list(const struct sandbox_option *o);
/* Return whether it takes no value. */
bool option_is_flag(const struct sandbox_option *o);
/* Return its number, or NULL if its member is none. */
uint64_t *option_number(const cloche_sandbox *sb, const struct sandbox_option *o);
/* Return its key in a configuration file, or else its name; borrowed, or in ret. */
const char *option_key(const struct sandbox_option *o, char ret[static 64]);
/* Return a pointer to its member. */
void *option_at(const cloche_sandbox *sb, const struct sandbox_option *o);
/* Set it from text. */
_warn_unused_ int option_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err);

/* Options that need more than a value (options_set.c). */
int option_user(cloche_sandbox *sb, const char *value, cloche_err *err); /* user.c */
int option_mount(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_env(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_env_file(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_pass_env(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_allow(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_allowlist(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_preset(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_secret(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_secret_file(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_aws_secret(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_no_record(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_net(cloche_sandbox *sb, const char *value, cloche_err *err);
int option_limits(cloche_sandbox *sb, const char *value, cloche_err *err);
