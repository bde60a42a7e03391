/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"

#include <errno.h>
#include <stdio.h>

char **strv_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
	return NULL;
}

size_t strv_count(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

bool strv_eq(char *const *a, char *const *b)
{
	size_t n = strv_count(a);

	for (size_t i = 0; i < n; i++)
		if (!b || !b[i] || strcmp(a[i], b[i]) != 0)
			return false;
	return strv_count(b) == n;
}

int strv_take(char ***v, char *s)
{
	size_t n = strv_count(*v);
	char **grown = s ? reallocarray(*v, n + 2, sizeof(char *)) : NULL;

	if (!grown) {
		free(s);
		return -ENOMEM;
	}
	grown[n] = s;
	grown[n + 1] = NULL;
	*v = grown;
	return 0;
}

int strv_add(char ***v, struct str s)
{
	return strv_take(v, str_dup(s));
}

int strv_copy(char *const *v, char ***ret)
{
	size_t n = strv_count(v);
	_cleanup_(strv_freep) char **copy = n ? calloc(n + 1, sizeof(char *)) : NULL;

	if (n && !copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		copy[i] = strdup(v[i]);
		if (!copy[i])
			return -ENOMEM;
	}
	*ret = TAKE_PTR(copy);
	return 0;
}

int set_string(char **at, const char *text, struct cloche_err *err)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return err_nomem(err);
	free(*at);
	*at = copy;
	return 0;
}

static bool is_named(const char *entry, struct str name)
{
	struct str e = str_from(entry);

	return str_starts(e, name) && e.n > name.n && e.p[name.n] == '=';
}

int strv_env_set(char ***v, const char *name, const char *value)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return -ENOMEM;
	for (size_t i = 0; *v && (*v)[i]; i++) {
		if (is_named((*v)[i], str_from(name))) {
			free((*v)[i]);
			(*v)[i] = entry;
			return 0;
		}
	}
	return strv_take(v, entry);
}

const char *strv_env_get(char *const *v, const char *name)
{
	for (size_t i = 0; v && v[i]; i++)
		if (is_named(v[i], str_from(name)))
			return v[i] + strlen(name) + 1;
	return NULL;
}

void strv_env_unset(char **v, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; v && v[i]; i++) {
		char *entry = v[i];

		v[i] = NULL;
		if (is_named(entry, str_from(name)))
			free(entry);
		else
			v[n++] = entry;
	}
}
