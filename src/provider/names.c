/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/names.h"
#include "base/program.h"
#include "base/str.h"
#include "base/strv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 32, REGISTERED_MAX = 16, OTHERS_MAX = 24 };

#define PROVIDER_NAME(name) #name,
static const char *const names_here[] = {
	"native", PROVIDER_PROGRAMS(PROVIDER_NAME) PROVIDER_LANDLOCK, PROVIDER_UNSANDBOXED};
/* The walls of the last are the lowest. */
static const char *const names_auto[] = {"native", "podman", "docker", PROVIDER_LANDLOCK};
static const char *const names_inside[] = {PROVIDERS(PROVIDER_NAME)};

static const struct {
	const char *named, *name;
} aliases[] = {
	{"auto", "auto"}, {PROVIDER_AUTO_OR_NONE, PROVIDER_AUTO_OR_NONE},
	{"none", PROVIDER_UNSANDBOXED}, {"local", PROVIDER_UNSANDBOXED},
	{"srt", "native"}, /* with the rules of a settings file: sandbox/srt.c */
};

static struct {
	char *name, *path;
} registered[REGISTERED_MAX];

const char *provider_name_at(size_t i)
{
	return i < ARRAY_SIZE(names_here) ? names_here[i] : NULL;
}

const char *provider_auto_at(size_t i)
{
	return i < ARRAY_SIZE(names_auto) ? names_auto[i] : NULL;
}

bool provider_makes_room(const char *name)
{
	return strcmp(name, PROVIDER_UNSANDBOXED) != 0 && strcmp(name, PROVIDER_LANDLOCK) != 0;
}

const char *provider_isolation(const char *name)
{
	if (strcmp(name, PROVIDER_UNSANDBOXED) == 0)
		return "none";
	return strcmp(name, PROVIDER_LANDLOCK) == 0 ? "landlock" : "sandbox";
}

bool provider_asks_service(const char *name)
{
	return strcmp(name, "e2b") == 0 || strcmp(name, "cloudflare") == 0;
}

bool provider_is_elsewhere(const char *name)
{
	return strcmp(name, "ssh") == 0 || strcmp(name, "kubernetes") == 0 ||
	       provider_asks_service(name);
}

static const char *find_in(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return names[i];
	return NULL;
}

static bool is_program_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= NAME_MAX_BYTES && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static const char *registered_path(const char *name)
{
	for (size_t i = 0; i < REGISTERED_MAX && registered[i].name; i++)
		if (strcmp(registered[i].name, name) == 0)
			return registered[i].path;
	return NULL;
}

int provider_name_register(const char *name, const char *path, struct cloche_err *err)
{
	size_t i = 0;

	if (!is_program_name(name) || find_in(names_inside, ARRAY_SIZE(names_inside), name) ||
		strcmp(name, "auto") == 0)
		return err_set(err, E_USAGE, "\"%s\" is no name for a provider's program", name);
	if (path[0] != '/')
		return err_set(err, E_USAGE, "provider %s: %s is no absolute path", name, path);
	while (i < REGISTERED_MAX && registered[i].name && strcmp(registered[i].name, name) != 0)
		i++;
	if (i == REGISTERED_MAX)
		return err_set(err, E_LIMIT, "more than %d providers", REGISTERED_MAX);
	free(registered[i].path);
	if (!registered[i].name)
		registered[i].name = strdup(name);
	registered[i].path = strdup(path);
	return registered[i].name && registered[i].path ? 0 : err_nomem(err);
}

/* Take the next directory of $CLOCHE_PROVIDER_PATH; return false after the last. */
static bool next_dir(struct str *rest, struct str *ret)
{
	while (rest->n) {
		*ret = str_next(rest, ':');
		if (ret->n && ret->p[0] == '/')
			return true;
	}
	return false;
}

static char *find_in_path(const char *name)
{
	struct str rest = str_from(secure_getenv("CLOCHE_PROVIDER_PATH")), dir;

	while (next_dir(&rest, &dir)) {
		_cleanup_(freep) char *path = NULL;

		if (asprintf(&path, "%.*s/" PROVIDER_PROGRAM "%s", STR_FMT(dir), name) < 0)
			continue;
		if (access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

char *provider_program_find(const char *name, struct cloche_err *err)
{
	const char *path = name[0] == '/' ? name : registered_path(name);
	char program[sizeof(PROVIDER_PROGRAM) + NAME_MAX_BYTES], *found = NULL;

	if (path && access(path, X_OK) == 0)
		found = strdup(path);
	if (!path && is_program_name(name)) {
		snprintf(program, sizeof(program), PROVIDER_PROGRAM "%s", name);
		found = program_find(program, NULL);
		if (!found)
			found = find_in_path(name);
	}
	if (found)
		return found;
	if (path)
		err_set(err, E_NOT_FOUND, "the provider %s is no program that can be executed",
			path);
	else
		err_set(err, E_NOT_FOUND,
			"there is no program " PROVIDER_PROGRAM "%s beside cloche's own, nor in "
			"CLOCHE_PROVIDER_PATH",
			name);
	return NULL;
}

bool provider_is_auto(const char *name)
{
	return find_in(names_auto, ARRAY_SIZE(names_auto), name) != NULL;
}

/* Return the name that an alias stands for, or NULL. */
static const char *find_alias(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases) && !registered_path(name); i++)
		if (strcmp(aliases[i].named, name) == 0)
			return aliases[i].name;
	return NULL;
}

static int add_other(char ***names, const char *name)
{
	bool known = find_alias(name) || find_in(names_here, ARRAY_SIZE(names_here), name) ||
		     (*names && find_in((const char *const *)*names, strv_count(*names), name));

	return known || strv_count(*names) >= OTHERS_MAX ? 0 : strv_add(names, str_from(name));
}

static int is_program_file(const struct dirent *e)
{
	return strncmp(e->d_name, PROVIDER_PROGRAM, strlen(PROVIDER_PROGRAM)) == 0 &&
	       is_program_name(e->d_name + strlen(PROVIDER_PROGRAM));
}

static int add_those_in(const char *dir, char ***names)
{
	struct dirent **all = NULL;
	int n = scandir(dir, &all, is_program_file, alphasort), r = 0;

	for (int i = 0; i < n; i++) {
		const char *name = all[i]->d_name + strlen(PROVIDER_PROGRAM);
		_cleanup_(freep) char *path = r == 0 ? provider_program_find(name, NULL) : NULL;

		if (path)
			r = add_other(names, name);
		free(all[i]);
	}
	free(all);
	return r;
}

int provider_names_add_others(char ***names)
{
	struct str rest = str_from(secure_getenv("CLOCHE_PROVIDER_PATH")), dir;
	int r = 0;

	for (size_t i = 0; i < REGISTERED_MAX && registered[i].name && r == 0; i++)
		r = add_other(names, registered[i].name);
	while (r == 0 && next_dir(&rest, &dir)) {
		_cleanup_(freep) char *path = str_dup(dir);

		r = path ? add_those_in(path, names) : -ENOMEM;
	}
	return r;
}

int provider_name_find(const char *named, const char **ret, struct cloche_err *err)
{
	*ret = find_in(names_here, ARRAY_SIZE(names_here), named);
	if (!*ret)
		*ret = find_alias(named);
	if (!*ret && (named[0] == '/' || is_program_name(named))) {
		_cleanup_(freep) char *path = provider_program_find(named, NULL);

		*ret = path ? named : NULL;
	}
	if (*ret)
		return 0;
	err_set(err, E_USAGE, "unknown provider \"%s\": it is " PROVIDERS_TEXT " or srt", named);
	err_hint(err, "a program " PROVIDER_PROGRAM "NAME of your own is found in the directories "
		      "of CLOCHE_PROVIDER_PATH");
	return -E_USAGE;
}

int provider_name_choose(const char *name, const char **ret, struct cloche_err *err)
{
	int r = provider_name_find(name, &name, err);

	if (r < 0)
		return r;
	/* A registered name is known to this process alone. */
	*ret = registered_path(name) ? registered_path(name) : name;
	return 0;
}
