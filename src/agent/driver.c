/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a driver is looked for in the person's own directory first, then among the
 * texts that the build has made of drivers/. One that builds on another (`base`) begins as a copy
 * of that, so it has to say only what is different. The directory is the person's, and no room is
 * shown it (docs/design/credentials.md). */
#include "agent/driver.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DRIVER_MAX = 64 << 10, DRIVER_NAME_MAX = 32, DRIVER_DEPTH = 4, DRIVERS_MAX = 256 };
#define DRIVER_SUFFIX ".yaml"

/* From drivers/NAME.yaml (the build makes them). */
#define SHIPPED(name, constant) extern const char agent_driver_##constant[];
#include "agent/drivers.def"

static const struct {
	const char *name, *text;
} shipped[] = {
#define SHIPPED(name, constant) {name, agent_driver_##constant},
#include "agent/drivers.def"
};

static const char *driver_shipped(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++)
		if (strcmp(shipped[i].name, name) == 0)
			return shipped[i].text;
	return NULL;
}

static bool driver_is_name(struct str s)
{
	return s.n > 0 && s.n <= DRIVER_NAME_MAX && s.p[0] != '-' &&
	       str_is_all(s, STR_LOWER STR_DIGITS "-");
}

/* Store the person's directory of drivers, on the heap; NULL: there is none. */
static int driver_dir(char **ret)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	_cleanup_(freep) char *home = NULL;
	bool is_set = config && config[0] == '/';

	*ret = NULL;
	if (!is_set)
		home = fs_home();
	if (is_set || home)
		*ret = is_set ? fs_join(config, "cloche/drivers")
			      : fs_join(home, ".config/cloche/drivers");
	return *ret || (!is_set && !home) ? 0 : -ENOMEM;
}

/* Store the path of a driver's file there; NULL: there cannot be one. */
static int driver_path(const char *name, char **ret)
{
	_cleanup_(freep) char *dir = NULL;
	int r = driver_dir(&dir);

	*ret = NULL;
	if (r < 0 || !dir || !driver_is_name(str_from(name)))
		return r;
	if (asprintf(ret, "%s/%s" DRIVER_SUFFIX, dir, name) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

/* Read the person's own driver. Return 1 if there is none. */
static int driver_read_own(const char *path, struct buf *out, struct cloche_err *err)
{
	if (!path || (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR)))
		return 1;
	return fd_read_file(AT_FDCWD, path, out, err);
}

static int driver_unknown(const char *name, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf known = BUF_INIT(16 << 10);
	_cleanup_(strv_freep) char **names = NULL;
	int r = agent_driver_names(&names, err);

	for (size_t i = 0; r == 0 && names && names[i]; i++)
		r = buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	if (r < 0 || !buf_cstr(&known))
		return err_nomem(err);
	return err_set(
		err, E_USAGE, "unknown driver \"%s\"; there are: %s", name, buf_cstr(&known));
}

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
	_cleanup_(buf_donep) struct buf own = BUF_INIT(DRIVER_MAX);
	_cleanup_(freep) char *path = NULL;
	const char *text = driver_shipped(name);
	int r = skip_own ? 0 : driver_path(name, &path);

	r = r < 0 ? err_nomem(err) : driver_read_own(path, &own, err);

	if (r == 0)
		return driver_take(buf_str(&own), path, name, depth, ret, err);
	if (r < 0)
		return r;
	return text ? driver_take(str_from(text), name, name, depth, ret, err)
		    : driver_unknown(name, err);
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
	_cleanup_(freep) char *path = NULL;

	if (driver_path(name, &path) < 0)
		return false;
	return driver_shipped(name) || (path && access(path, F_OK) == 0);
}

static int driver_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Add the names of the person's own drivers that are not shipped. */
static int driver_add_own(char ***names)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct dirent *e;
	int r = driver_dir(&path);

	if (r == 0 && path)
		list = fs_list(AT_FDCWD, path);
	while (r == 0 && list && (e = fs_list_next(list)) && strv_count(*names) < DRIVERS_MAX) {
		struct str file = str_from(e->d_name), end = STR(DRIVER_SUFFIX);
		_cleanup_(freep) char *name = NULL;

		if (!str_ends(file, end) || !driver_is_name(str_prefix(file, file.n - end.n)))
			continue;
		name = str_dup(str_prefix(file, file.n - end.n));
		if (!name)
			return -ENOMEM;
		r = driver_shipped(name) ? 0 : strv_add(names, str_from(name));
	}
	return r;
}

int agent_driver_names(char ***ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shipped); i++)
		r = strv_add(&names, str_from(shipped[i].name));
	if (r == 0)
		r = driver_add_own(&names);
	if (r < 0)
		return err_nomem(err);
	qsort(names, strv_count(names), sizeof(*names), driver_compare);
	*ret = TAKE_PTR(names);
	return 0;
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
