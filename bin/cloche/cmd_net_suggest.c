/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd_net.h"

#include <cloche/network_log.h>
#include <string.h>
#include <unistd.h>

int net_suggest(const struct net_options *o, const char *path)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_network_suggestion *s = NULL;
	const char *text;
	bool ok;

	if (cloche_network_log_suggest(path, o->blocked, &s, &err) < 0)
		return complain(&err);
	text = o->json ? cloche_network_suggestion_json(s) : cloche_network_suggestion_yaml(s);
	ok = put(STDOUT_FILENO, text, strlen(text)) && (!o->json || put(STDOUT_FILENO, "\n", 1));
	cloche_network_suggestion_free(s);
	return ok ? 0 : EXIT_CLOCHE;
}
