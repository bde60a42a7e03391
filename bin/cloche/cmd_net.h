/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `cloche net`: the options of its subcommands. Each returns the exit status. */

#include "cli.h"
#include <cloche/allowlist.h>

struct net_options {
	cloche_allowlist *list;
	bool any_list, blocked, json;
};

/* cmd_net_set.c: replaces the policy of a running sandbox. */
int net_set(const struct net_options *o, const char *id);
/* cmd_net_suggest.c: proposes an allowlist from a log. */
int net_suggest(const struct net_options *o, const char *path);
