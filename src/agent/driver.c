/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "agent/claude_code.h"
#include "base/buf.h"
#include "base/fs.h"

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

int agent_argv_add(struct agent_argv *a, const char *s, struct cloche_err *err)
{
	char **v = reallocarray(a->v, a->n + 2, sizeof(*v));

	if (!v)
		return err_nomem(err);
	a->v = v;
	v[a->n] = strdup(s);
	if (!v[a->n])
		return err_nomem(err);
	v[++a->n] = NULL;
	return 0;
}

void agent_argv_done(struct agent_argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	*a = (struct agent_argv){.v = NULL};
}

void agent_program_done(struct agent_program *p)
{
	free(p->path);
	free(p->host);
	free(p->mount.source);
	free(p->mount.destination);
	*p = (struct agent_program){.path = NULL};
}

static int env_add(
	const struct agent_env *e, const char *home, struct agent_argv *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *value = e->in_home ? fs_join(home, e->value) : strdup(e->value);
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1U << 16);

	if (!value || buf_printf(&text, "%s=%s", e->name, value) < 0 || !buf_cstr(&text))
		return err_nomem(err);
	return agent_argv_add(ret, buf_cstr(&text), err);
}

int agent_driver_environ(const struct agent_driver *d, const char *home, struct agent_argv *ret,
	struct cloche_err *err)
{
	int r = 0;

	for (const struct agent_env *e = d->env; r == 0 && e->name; e++)
		r = env_add(e, home, ret, err);
	return r;
}

bool agent_driver_withholds(const struct agent_driver *d, const char *name)
{
	for (size_t i = 0; d->env_withheld[i]; i++)
		if (strcmp(d->env_withheld[i], name) == 0)
			return true;
	return false;
}
