/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "auto" is the first provider that works here. Whether one does is seen when
 * it makes the room, so that the usual one costs nothing; the next is asked before it is tried.
 * What was passed over is said, as another provider may be a weaker wall. */
#include "provider/names.h"
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

/* Adds "NAME: why" to the list. */
static int add_reason(char **list, const char *name, const struct cloche_err *why)
{
	_cleanup_(freep) char *before = *list;

	if (asprintf(list, "%s%s%s: %s", before ? before : "", before ? "; " : "", name,
		    why->message) < 0) {
		*list = NULL;
		return -1;
	}
	return 0;
}

static int try_all(struct supervisor *s, create_fn create, struct cloche_err *err)
{
	_cleanup_(freep) char *reasons = NULL;
	struct cloche_err first = CLOCHE_ERR_INIT, why;
	bool others = false;

	for (size_t i = 0; i < PROVIDERS_AUTO; i++) {
		const char *name = provider_name_at(i);
		const struct provider *p;
		int r;

		why = (struct cloche_err)CLOCHE_ERR_INIT;
		p = provider_find(str_from(name), &why);
		r = p ? 0 : -why.code;
		if (r == 0 && i > 0)
			r = p->probe(p, &why);
		if (r == 0)
			r = create(s, p, &why);
		if (r == 0 && !reasons)
			return 0;
		if (r == 0)
			return asprintf(&s->passed_over,
				       "provider %s makes the sandbox, as others do not work: "
				       "%s",
				       name, reasons) < 0
				       ? err_nomem(err)
				       : 0;
		/* Where it works here, what was asked for is at fault. */
		if (i == 0 && p && p->probe(p, NULL) == 0) {
			*err = why;
			return r;
		}
		if (i == 0)
			first = why;
		/* What is not installed at all is no news. */
		others = others || (i > 0 && p);
		if ((i == 0 || p) && add_reason(&reasons, name, &why) < 0)
			return err_nomem(err);
	}
	if (!others) {
		*err = first;
		return -first.code;
	}
	err_set(err, E_UNSUPPORTED, "no provider works here: %s", reasons);
	if (first.hint[0])
		err_hint(err, "%s", first.hint);
	return -E_UNSUPPORTED;
}

int choose_provider(struct supervisor *s, create_fn create, struct cloche_err *err)
{
	const char *name = s->start.provider && s->start.provider[0] ? s->start.provider : "auto";
	const struct provider *p;
	int r = provider_name_choose(name, &name, err);

	if (r < 0)
		return r;
	if (strcmp(name, "auto") == 0)
		return try_all(s, create, err);
	p = provider_find(str_from(name), err);
	return p ? create(s, p, err) : -err->code;
}
