/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd_net.h"
#include "json_out.h"

#include <stdio.h>

int net_set(const struct net_options *o, const char *id)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_policy_change change;
	cloche_instance *i = NULL;
	int r;

	if (!o->any_list) {
		wrong_usage(&err, "a file without any rule blocks everything",
			"net set: which allowlist? use --allowlist FILE or --allow HOST");
		return complain(&err);
	}
	r = cloche_instance_open(id, &i, &err);
	if (r == 0)
		r = cloche_instance_set_allowlist(i, o->list, &change, &err);
	if (r < 0)
		r = complain(&err);
	else if (o->json)
		r = json_print(json_pack("{s:s, s:I, s:I}", "id", cloche_instance_id(i), "rules",
			    (json_int_t)change.rules, "closed", (json_int_t)change.closed))
			    ? 0
			    : EXIT_CLOCHE;
	else
		say("%u rule%s, %u request%s broken off", change.rules,
			change.rules == 1 ? "" : "s", change.closed, change.closed == 1 ? "" : "s");
	cloche_instance_free(i);
	return r;
}
