/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How rules are put together; for the files of this folder only. The setters check what they are
 * given and return 0, -ENOMEM, or -EINVAL with *ret_want saying what was expected. */

#include "policy/allowlist.h"
#include "policy/path.h"

/* The longest pattern or field name, the longest method and the longest list of a rule. */
#define RULE_TEXT_MAX 2048
#define RULE_METHOD_MAX 32
#define RULE_LIST_MAX 256

struct allow_rule *rule_new(void);
struct allow_rule *rule_free(struct allow_rule *rule);
DEFINE_CLEANUP(struct allow_rule, rule_free)

_warn_unused_ int rule_set_host(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_set_path(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_set_path_prefix(
	struct allow_rule *rule, struct str s, const char **ret_want);
/* Return whether rule_add_method() takes it. */
bool rule_is_method(struct str s);
_warn_unused_ int rule_add_method(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_set_user(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_add_scheme(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_add_port(struct allow_rule *rule, struct str s, const char **ret_want);
_warn_unused_ int rule_add_range(struct allow_rule *rule, struct str s, const char **ret_want);
/* Add to one of the graphql lists. */
_warn_unused_ int rule_add_field(char ***list, struct str s, const char **ret_want);

/* Whether a rule with `graphql` names this path of its host without wildcards, in any spelling. A
 * path that cannot be decided, or that a header may change (other_path), counts as that path. The
 * caller has compared the host. */
bool rule_guards(const struct allow_rule *rule, const struct path *path, bool other_path);

/* Whether a denial is for this path of its host, in any spelling. unseen: the path may be another
 * one. The caller has compared the rest. */
bool rule_denies(const struct allow_rule *rule, const struct path *path, bool unseen);

/* A path of git over ssh without what makes no difference to git: ".git" and '/' at its end. */
struct str rule_repository(struct str path);

/* Check the whole rule and fill in defaults. */
_warn_unused_ int rule_finish(struct allow_rule *rule, const char **ret_want);

/* A bunch of rules that is added to an allowlist in one go or not at all. */
struct rule_batch {
	struct allow_rule **v;
	size_t n, cap;
	unsigned domains, entries; /* how many of each are in it */
};

void rule_batch_done(struct rule_batch *b);
/* Make room for more rules. Return 0 or -ENOMEM. */
_warn_unused_ int rule_batch_reserve(struct rule_batch *b, size_t more);
/* Take a finished rule. Return 0, -ENOMEM, or -E2BIG at ALLOWLIST_MAX_RULES. */
_warn_unused_ int rule_batch_add(struct rule_batch *b, struct allow_rule *rule);

/* Read the text of an allowlist. Return 0 or negative with err set. */
_warn_unused_ int yaml_rules_parse(
	struct str text, const char *source, struct rule_batch *ret, struct cloche_err *err);
