/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "auto" is the first provider that works here. The usual provider is simply
 * tried, so that it costs nothing extra; the others are probed first. Skipped providers are
 * reported, as the one that is used may isolate less. */
#include "ipc/roomctl.h"
#include "provider/names.h"
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Add "NAME: why" to the list. */
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

struct attempt {
	bool is_there; /* it is installed at all */
	bool works;    /* known after a failure: this machine is not at fault */
};

/* Try the i-th provider in the order of "auto". */
static int try_one(struct supervisor *s, size_t i, create_fn create, struct attempt *ret,
	struct cloche_err *why)
{
	const struct provider *p = provider_find(str_from(provider_auto_at(i)), why);
	bool surely = false;
	int r = p ? 0 : -why->code;

	*ret = (struct attempt){.is_there = p != NULL};
	/* The first is not probed. */
	if (r == 0 && i > 0)
		r = provider_works(p, &ret->works, why);
	if (r == 0)
		r = create(s, p, why);
	/* Where it is in doubt, the machine is at fault if the system refused something. Inside a
	 * sandbox no other can be made. */
	if (r < 0 && p && i == 0)
		ret->works = (provider_works(p, &surely, NULL) == 0 &&
				     (surely || why->code != E_SYSTEM)) ||
			     access(ROOMCTL_INIT_PATH, F_OK) == 0;
	/* That the lowest walls do not fit this sandbox is no reason against none. */
	if (p && !provider_makes_room(p->name))
		ret->works = false;
	return r;
}

static int say_passed_over(
	struct supervisor *s, const char *name, const char *reasons, struct cloche_err *err)
{
	return asprintf(&s->passed_over, "provider %s makes the sandbox, as others do not work: %s",
		       name, reasons) < 0
		       ? err_nomem(err)
		       : 0;
}

/* The last resort, if the user allows it. */
static int go_without(
	struct supervisor *s, create_fn create, const char *reasons, struct cloche_err *err)
{
	const struct provider *p = provider_find(STR(PROVIDER_UNSANDBOXED), err);
	int r = p ? create(s, p, err) : -err->code;

	return r < 0 ? r : say_passed_over(s, PROVIDER_UNSANDBOXED, reasons, err);
}

static int try_all(struct supervisor *s, create_fn create, bool or_none, struct cloche_err *err)
{
	_cleanup_(freep) char *reasons = NULL;
	struct cloche_err first = CLOCHE_ERR_INIT, why;
	bool others = false, works = false;
	struct attempt a;

	for (size_t i = 0; provider_auto_at(i); i++) {
		const char *name = provider_auto_at(i);
		int r;

		/* Low walls are for machines where no others can be had. */
		if (works && strcmp(name, PROVIDER_LANDLOCK) == 0)
			break;
		why = (struct cloche_err)CLOCHE_ERR_INIT;
		r = try_one(s, i, create, &a, &why);
		if (r == 0)
			return reasons ? say_passed_over(s, name, reasons, err) : 0;
		if (i == 0)
			first = why;
		works = works || a.works;
		if (i == 0 && works)
			break;
		/* Providers that are not installed need no report. */
		others = others || (i > 0 && a.is_there);
		if (a.is_there && add_reason(&reasons, name, &why) < 0)
			return err_nomem(err);
	}
	if (or_none && !works)
		return go_without(s, create, reasons, err);
	*err = first;
	if (!others)
		return -first.code;
	err_set(err, E_UNSUPPORTED, "no provider %s: %s",
		works ? "makes this sandbox" : "works here", reasons);
	if (or_none)
		err_hint(err, "an engine works here, so nothing runs without isolation; "
			      "--provider subprocess does that");
	else if (first.hint[0])
		err_hint(err, "%s", first.hint);
	return -E_UNSUPPORTED;
}

void choose_on_elsewhere(void *user, const char *place)
{
	struct supervisor *s = user;

	free(s->elsewhere);
	s->elsewhere = strdup(place);
}

/* The provider's own settings lead to another place. */
static int go_elsewhere(
	struct supervisor *s, create_fn create, const struct provider *p, struct cloche_err *err)
{
	int r = provider_check_place(p, s->elsewhere, err);

	if (r < 0)
		return r;
	if (s->spec.keeps_home) {
		err_set(err, E_UNSUPPORTED,
			"provider %s makes rooms at %s, and an agent that runs so keeps "
			"its home on this machine",
			p->name, s->elsewhere);
		err_hint(err, "\"cloche run\" and \"cloche agent\" can do that");
		return -E_UNSUPPORTED;
	}
	if (s->spec.root != ROOM_ROOT_HOST) {
		err_set(err, E_UNSUPPORTED,
			"provider %s makes rooms at %s, where the images of this machine are not",
			p->name, s->elsewhere);
		err_hint(err, "say --place %s as well, and --root image:NAME is an image there",
			s->elsewhere);
		return -E_UNSUPPORTED;
	}
	if (asprintf(&s->passed_over, "provider %s makes the sandbox at %s", p->name,
		    s->elsewhere) < 0) {
		s->passed_over = NULL;
		return err_nomem(err);
	}
	s->spec.place = TAKE_PTR(s->elsewhere);
	err_clear(err);
	return create(s, p, err);
}

int choose_provider(struct supervisor *s, create_fn create, struct cloche_err *err)
{
	const char *name = s->start.provider && s->start.provider[0] ? s->start.provider : "auto";
	const struct provider *p;
	int r = provider_name_choose(name, &name, err);

	if (r < 0)
		return r;
	s->spec.lifetime_usec = s->start.timeout_usec;
	if ((strcmp(name, "auto") == 0 || strcmp(name, PROVIDER_AUTO_OR_NONE) == 0) &&
		s->spec.place) {
		err_set(err, E_USAGE, "--place %s: --provider has to say what makes rooms there",
			s->spec.place);
		err_hint(err, "for a machine that ssh reaches, use --provider ssh");
		return -E_USAGE;
	}
	if (strcmp(name, "auto") == 0 || strcmp(name, PROVIDER_AUTO_OR_NONE) == 0)
		return try_all(s, create, name[strlen("auto")] != '\0', err);
	p = provider_find(str_from(name), err);
	r = p ? provider_check_place(p, s->spec.place, err) : -err->code;
	if (r == 0)
		r = create(s, p, err);
	return r < 0 && s->elsewhere && !s->spec.place ? go_elsewhere(s, create, p, err) : r;
}
