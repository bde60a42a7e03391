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

/* The i-th in the order of "auto". *ret_there: it is installed at all. */
static int try_one(
	struct supervisor *s, size_t i, create_fn create, bool *ret_there, struct cloche_err *why)
{
	const struct provider *p = provider_find(str_from(provider_name_at(i)), why);
	int r = p ? 0 : -why->code;

	*ret_there = p != NULL;
	/* The first is not asked before. */
	if (r == 0 && i > 0)
		r = p->probe(p, why);
	return r == 0 ? create(s, p, why) : r;
}

/* Whether it is what was asked for that is at fault, not this machine. */
static bool is_no_fault_of_it(size_t i)
{
	const struct provider *p = provider_find(str_from(provider_name_at(i)), NULL);

	return p && p->probe(p, NULL) == 0;
}

static int say_passed_over(
	struct supervisor *s, const char *name, const char *reasons, struct cloche_err *err)
{
	return asprintf(&s->passed_over, "provider %s makes the sandbox, as others do not work: %s",
		       name, reasons) < 0
		       ? err_nomem(err)
		       : 0;
}

static int try_all(struct supervisor *s, create_fn create, struct cloche_err *err)
{
	_cleanup_(freep) char *reasons = NULL;
	struct cloche_err first = CLOCHE_ERR_INIT, why;
	bool others = false, is_there;

	for (size_t i = 0; i < PROVIDERS_AUTO; i++) {
		const char *name = provider_name_at(i);
		int r;

		why = (struct cloche_err)CLOCHE_ERR_INIT;
		r = try_one(s, i, create, &is_there, &why);
		if (r == 0)
			return reasons ? say_passed_over(s, name, reasons, err) : 0;
		if (i == 0)
			first = why;
		if (i == 0 && is_no_fault_of_it(i))
			break;
		/* What is not installed at all is no news. */
		others = others || (i > 0 && is_there);
		if (is_there && add_reason(&reasons, name, &why) < 0)
			return err_nomem(err);
	}
	*err = first;
	if (!others)
		return -first.code;
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
