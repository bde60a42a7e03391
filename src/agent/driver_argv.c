/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a headless agent, from its driver and what the user wants. */
#include "agent/driver.h"
#include "base/strv.h"

#include <stdio.h>
#include <string.h>

static int argv_lacks(const struct agent_driver *d, const char *what, struct cloche_err *err)
{
	return err_set(
		err, E_USAGE, "%s (driver %s) has no option for %s", d->title, d->name, what);
}

/* Refuse a value that the agent's own parser would take for an option. */
static int argv_word(const struct agent_driver *d, char ***argv, const char *option,
	const char *what, const char *value, struct cloche_err *err)
{
	if (!value)
		return 0;
	if (!option)
		return argv_lacks(d, what, err);
	if (value[0] == '-' || value[0] == '\0')
		return err_set(err, E_USAGE, "%s: \"%s\" is not a usable value", option, value);
	return strv_add(argv, str_from(option)) < 0 || strv_add(argv, str_from(value)) < 0
		       ? err_nomem(err)
		       : 0;
}

/* A text may begin with anything, so it is joined to its option. */
static int argv_text(const struct agent_driver *d, char ***argv, const char *option,
	const char *what, const char *text, struct cloche_err *err)
{
	char *joined;

	if (!text)
		return 0;
	if (!option)
		return argv_lacks(d, what, err);
	return asprintf(&joined, "%s=%s", option, text) < 0 || strv_take(argv, joined) < 0
		       ? err_nomem(err)
		       : 0;
}

int agent_driver_argv(const struct agent_driver *d, const struct agent_request *rq,
	const char *program, char ***ret, struct cloche_err *err)
{
	const char *model = rq->model || !d->model ? rq->model : AGENT_MODEL_DEFAULT;
	char turns[16] = "";
	int r = strv_add(ret, str_from(program)) < 0 ? err_nomem(err) : 0;

	if (rq->max_turns > 0)
		snprintf(turns, sizeof(turns), "%u", rq->max_turns);
	if (r == 0)
		r = argv_word(d, ret, d->resume, "a session", rq->resume, err);
	if (r == 0)
		r = argv_word(d, ret, d->model, "a model", model, err);
	if (r == 0)
		r = argv_word(d, ret, d->effort, "an effort", rq->effort, err);
	for (char *const *a = d->arguments; r == 0 && a && *a; a++)
		if (!rq->is_command || strcmp(*a, "-") != 0)
			r = strv_add(ret, str_from(*a)) < 0 ? err_nomem(err) : 0;
	if (r == 0)
		r = argv_word(d, ret, d->max_turns, "turns", *turns ? turns : NULL, err);
	return r < 0 ? r
		     : argv_text(
			       d, ret, d->system_prompt, "a system prompt", rq->system_prompt, err);
}
