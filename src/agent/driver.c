/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: drivers are texts (fs/shipped.h). One that builds on another (`base`) begins
 * as a copy of that, so it has to say only what is different. */
#include "agent/driver.h"
#include "base/buf.h"
#include "base/strv.h"
#include "fs/shipped.h"

#include <string.h>

enum { DRIVER_MAX = 64 << 10, DRIVER_DEPTH = 4 };

extern const struct shipped_text agent_drivers[]; /* of drivers/, by the build */
static const struct shipped drivers = {"driver", "drivers", agent_drivers};

static int driver_load(const char *name, bool skip_own, unsigned depth, struct agent_driver *ret,
	struct cloche_err *err);

/* Read what the driver builds on, and then the driver itself over it. */
static int driver_take(struct str text, const char *file, const char *name, unsigned depth,
	struct agent_driver *ret, struct cloche_err *err)
{
	struct agent_driver *probe = calloc(1, sizeof(*probe));
	_cleanup_(freep) char *base = NULL, *unused = NULL;
	int r = probe ? agent_driver_read(text, file, probe, &base, err) : err_nomem(err);

	agent_driver_free(probe);
	if (r < 0)
		return r;
	if (base && depth >= DRIVER_DEPTH)
		return err_set(err, E_CONFIG, "%s: drivers build on each other without end", file);
	/* A driver of the person that builds on its own name builds on the shipped one. */
	if (base)
		r = driver_load(base, strcmp(base, name) == 0, depth + 1, ret, err);
	return r < 0 ? err_wrap(err, r, "%s", file)
		     : agent_driver_read(text, file, ret, &unused, err);
}

static int driver_load(const char *name, bool skip_own, unsigned depth, struct agent_driver *ret,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(DRIVER_MAX);
	_cleanup_(freep) char *file = NULL;
	int r = shipped_read(&drivers, name, skip_own, &text, &file, err);

	return r < 0 ? r : driver_take(buf_str(&text), file, name, depth, ret, err);
}

/* Refuse a driver that lacks what every use of it needs. */
static int driver_check(const struct agent_driver *d, struct cloche_err *err)
{
	const char *missing = !d->program ? "program" : !d->title ? "title" : NULL;

	if (!missing && d->output && (!d->context || !d->state || d->keys_n == 0))
		missing = !d->context ? "headless: context" : !d->state ? "state" : "keys";
	return missing ? err_set(err, E_CONFIG, "the driver %s has no \"%s\"", d->name, missing)
		       : 0;
}

int agent_driver_get(const char *name, struct agent_driver **ret, struct cloche_err *err)
{
	_cleanup_(agent_driver_freep) struct agent_driver *d = calloc(1, sizeof(*d));
	int r;

	if (!name)
		name = AGENT_DRIVER_DEFAULT;
	if (!d)
		return err_nomem(err);
	r = driver_load(name, false, 0, d, err);
	if (r == 0)
		r = set_string(&d->name, name, err);
	if (r == 0)
		r = driver_check(d, err);
	if (r == 0)
		*ret = TAKE_PTR(d);
	return r;
}

bool agent_driver_is(const char *name)
{
	return shipped_has(&drivers, name);
}

int agent_driver_names(char ***ret, struct cloche_err *err)
{
	return shipped_names(&drivers, ret, err);
}

bool agent_is_credential(struct str name)
{
	_cleanup_(strv_freep) char **names = NULL;
	bool is = false;

	if (agent_driver_names(&names, NULL) < 0)
		return true; /* somebody is asked too much rather than too little */
	for (char *const *n = names; *n && !is; n++) {
		_cleanup_(agent_driver_freep) struct agent_driver *d = NULL;

		if (agent_driver_get(*n, &d, NULL) < 0)
			continue;
		for (size_t i = 0; i < d->keys_n; i++)
			is |= str_eq(name, str_from(d->keys[i].env));
	}
	return is;
}

void agent_program_done(struct agent_program *p)
{
	free(p->path);
	free(p->host);
	free(p->source);
	free(p->destination);
	*p = (struct agent_program){.path = NULL};
}

bool agent_key_withholds(const struct agent_key *key, const char *name)
{
	for (char *const *w = key->withhold; w && *w; w++)
		if (strcmp(*w, name) == 0)
			return true;
	return false;
}
