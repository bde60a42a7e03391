/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: all places are asked at once, and heard one after the other. Each has the
 * same few seconds from the beginning on, so all of it takes no longer than the slowest one. */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "provider/provider.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES_MAX = 64, PLACE_SEC = 5 };

struct place_look {
	cloche_place_status status; /* with parts of the others */
	char *place, *provider;
	const struct provider *maker; /* NULL: there is none */
	struct provider_asked *asked;
	uint64_t asked_at;
	struct provider_about about;
	struct cloche_err why;
};

struct places {
	struct place_look looks[PLACES_MAX];
	const cloche_place_status *list[PLACES_MAX + 1]; /* ends with NULL */
	size_t n;
};

void places_free(struct places *p)
{
	for (size_t i = 0; p && i < p->n; i++) {
		free(p->looks[i].place);
		free(p->looks[i].provider);
	}
	free(p);
}

DEFINE_CLEANUP(struct places, places_free)

const cloche_place_status *const *places_list(const struct places *p)
{
	return p->list;
}

static bool places_has(const struct places *p, const cloche_sandbox *sb)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->looks[i].place, sb->place) == 0 &&
			strcmp(p->looks[i].provider, sb->provider) == 0)
			return true;
	return false;
}

static int places_add(struct places *p, const cloche_sandbox *sb, struct cloche_err *err)
{
	struct place_look *l = &p->looks[p->n];

	if (!sb->place || places_has(p, sb))
		return 0;
	if (p->n == PLACES_MAX)
		return err_set(err, E_LIMIT, "more than %d places", PLACES_MAX);
	*l = (struct place_look){.why = CLOCHE_ERR_INIT,
		.place = strdup(sb->place),
		.provider = strdup(sb->provider)};
	p->n++;
	return l->place && l->provider ? 0 : err_nomem(err);
}

/* Any provider may be found to be the first that works here, but none to be the one there. */
static bool place_has_provider(const struct place_look *l)
{
	return strcmp(l->provider, "auto") != 0 && strcmp(l->provider, PROVIDER_AUTO_OR_NONE) != 0;
}

static int place_ask(struct place_look *l)
{
	const char *name;

	if (!place_has_provider(l)) {
		err_set(&l->why, E_USAGE, "no provider is named for it");
		err_hint(&l->why, "set CLOCHE_PROVIDER; provider ssh reaches places by ssh");
		return -E_USAGE;
	}
	if (provider_name_choose(l->provider, &name, &l->why) < 0)
		return -l->why.code;
	l->maker = provider_find(str_from(name), &l->why);
	l->asked_at = clock_mono_usec();
	return l->maker ? provider_ask_place(l->maker, l->place, PLACE_SEC, &l->asked, &l->why)
			: -l->why.code;
}

/* r: of place_ask() */
static void place_hear(struct place_look *l, int r)
{
	uint64_t silent_us = 0;

	if (r == 0)
		r = l->maker->hear_place(TAKE_PTR(l->asked), &l->about, &l->why);
	if (r > 0) {
		silent_us = clock_mono_usec() - l->asked_at;
		err_set(&l->why, E_BROKEN, "nothing answered for %llu s",
			(unsigned long long)(silent_us / USEC_PER_SEC));
	}
	l->status = (cloche_place_status){.size = sizeof(l->status),
		.place = l->place,
		.provider = place_has_provider(l) ? l->provider : "",
		.answers = r == 0,
		.reason = l->why.message,
		.advice = r == 0 ? l->about.doubt : l->why.hint,
		.silent_us = silent_us};
}

int places_ask(const cloche_sandbox *const *sandboxes, size_t n, struct places **ret,
	struct cloche_err *err)
{
	_cleanup_(places_freep) struct places *p = calloc(1, sizeof(*p));
	int r = p ? 0 : err_nomem(err), asked[PLACES_MAX];

	for (size_t i = 0; r == 0 && i < n; i++)
		r = places_add(p, sandboxes[i], err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n; i++)
		asked[i] = place_ask(&p->looks[i]);
	/* Also if the caller's job was cancelled: what was started has to be ended. */
	for (size_t i = 0; i < p->n; i++) {
		struct place_look *l = &p->looks[i];

		place_hear(l, asked[i]);
		p->list[i] = &l->status;
		if (r == 0 && (l->why.code == E_CANCELLED || l->why.code == E_NO_MEMORY))
			r = err_set(err, l->why.code, "%s", l->why.message);
	}
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

json_t *places_describe(const struct places *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++) {
		const cloche_place_status *s = &p->looks[i].status;

		/* Programs of others, and places, may say any bytes. */
		json_array_append_new(list,
			json_pack("{s:o, s:o, s:b, s:o, s:o, s:f}", "place",
				json_utf8(str_from(s->place)), "provider",
				s->provider[0] ? json_utf8(str_from(s->provider)) : json_null(),
				"answers", (int)s->answers, "reason",
				json_utf8(str_from(s->reason)), "advice",
				json_utf8(str_from(s->advice)), "silentSeconds",
				(double)s->silent_us / (double)USEC_PER_SEC));
	}
	return list;
}
