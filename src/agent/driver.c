/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/buf.h"

#include <string.h>

static const struct agent_driver *const drivers[] = {
	&agent_claude_code,
	&agent_claude_subscription,
	NULL,
};

const struct agent_driver *const *agent_drivers(void)
{
	return drivers;
}

int agent_driver_get(const char *name, const struct agent_driver **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf known = BUF_INIT(1024);
	const char *list;

	for (size_t i = 0; drivers[i]; i++) {
		if (!name || strcmp(drivers[i]->name, name) == 0) {
			*ret = drivers[i];
			return 0;
		}
		if (buf_printf(&known, "%s%s", i ? ", " : "", drivers[i]->name) < 0)
			return err_nomem(err);
	}
	list = buf_cstr(&known);
	if (!list)
		return err_nomem(err);
	return err_set(err, E_USAGE, "unknown driver \"%s\"; there are: %s", name, list);
}

void agent_program_done(struct agent_program *p)
{
	free(p->path);
	free(p->host);
	free(p->source);
	free(p->destination);
	*p = (struct agent_program){.path = NULL};
}

bool agent_driver_withholds(const struct agent_driver *d, const char *name)
{
	for (size_t i = 0; d->env_withheld[i]; i++)
		if (strcmp(d->env_withheld[i], name) == 0)
			return true;
	return false;
}
