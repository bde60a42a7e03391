/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has of its sandbox where its client named nothing. */
#include "base/strv.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <string.h>

bool task_is_of_other(const struct supervisor *s, const struct exec_spec *spec)
{
	const struct room *room = s->room;

	return room->provider->has_one_user && spec->has_user &&
	       (spec->uid != room->uid || spec->gid != room->gid);
}

void task_choose_user(const struct supervisor *s, struct exec_spec *spec)
{
	if (spec->has_user)
		return;
	spec->uid = s->room->uid;
	spec->gid = s->room->gid;
	spec->has_user = true;
}

int task_inherit(const struct supervisor *s, struct ctl_exec *m)
{
	struct exec_spec *spec = &m->spec;
	_cleanup_(strv_freep) char **env = NULL;
	int r = strv_copy(s->start.env, &env);

	for (size_t i = 0; spec->unset && spec->unset[i]; i++)
		strv_env_unset(env, spec->unset[i]);
	for (char **v = spec->env, *eq; v && *v && (eq = strchr(*v, '=')) && r == 0; v++) {
		*eq = '\0';
		r = strv_env_set(&env, *v, eq + 1);
		*eq = '=';
	}
	if (r == 0)
		r = exec_env_default(&env, spec->defaults);
	if (r == 0 && !spec->cwd && s->start.cwd && s->start.cwd[0]) {
		spec->cwd = strdup(s->start.cwd);
		r = spec->cwd ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	strv_free(spec->env);
	spec->env = TAKE_PTR(env);
	spec->unset = strv_free(spec->unset);
	spec->defaults = strv_free(spec->defaults);
	if (!spec->has_user && s->start.has_user) {
		spec->uid = s->start.uid;
		spec->gid = s->start.gid;
		spec->has_user = true;
	}
	if (spec->timeout_usec == 0)
		spec->timeout_usec = s->start.exec_timeout_usec;
	return 0;
}
