/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "ipc/rundir.h"
#include "manager/cleanup.h"
#include "provider/provider.h"
#include <cloche/status.h>

#include <stdio.h>

void cloche_provider_each(cloche_provider_fn fn, void *user)
{
	const char *name;

	for (size_t i = 0; (name = provider_name_at(i)); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		cloche_provider_status s = {.name = name, .automatic = i < PROVIDERS_AUTO};

		const struct provider *p = provider_find(str_from(name), &err);

		s.available = p && p->probe(p, &err) == 0;
		s.reason = err.message;
		s.advice = err.hint;
		fn(&s, user);
	}
}

int cloche_cleanup_read(cloche_cleanup_status *ret, cloche_err *err)
{
	_cleanup_fd_ int base = rundir_open(err);
	struct cleanup c;

	if (base < 0)
		return base;
	cleanup_read(base, &c);
	*ret = (cloche_cleanup_status){.at_us = c.at_usec, .error_us = c.error_at};
	snprintf(ret->error, sizeof(ret->error), "%s", c.error);
	return 0;
}
