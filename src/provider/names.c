/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/names.h"

#include <string.h>

#define PROVIDER_NAME(name) #name,
static const char *const names_here[] = {PROVIDERS(PROVIDER_NAME)};

/* Names that other versions have, and aliases. */
static const struct {
	const char *named, *name;
} names_elsewhere[] = {
	{"auto", "auto"},
	{"srt", "srt"},
	{"podman", "podman"},
	{"docker", "docker"},
	{"e2b", "e2b"},
	{"cloudflare", "cloudflare"},
	{"subprocess", "subprocess"},
	{"none", "subprocess"},
	{"local", "subprocess"},
};

const char *provider_name_at(size_t i)
{
	return i < ARRAY_SIZE(names_here) ? names_here[i] : NULL;
}

static const char *find_here(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names_here); i++)
		if (strcmp(name, names_here[i]) == 0)
			return names_here[i];
	return NULL;
}

int provider_name_find(const char *named, const char **ret, struct cloche_err *err)
{
	*ret = find_here(named);
	if (*ret)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names_elsewhere); i++)
		if (strcmp(named, names_elsewhere[i].named) == 0) {
			*ret = names_elsewhere[i].name;
			return 0;
		}
	return err_set(err, E_USAGE, "unknown provider \"%s\": it is " PROVIDERS_TEXT, named);
}

int provider_name_choose(const char *name, const char **ret, struct cloche_err *err)
{
	int r = provider_name_find(name, &name, err);

	if (r < 0)
		return r;
	*ret = strcmp(name, "auto") == 0 ? names_here[0] : find_here(name);
	if (*ret)
		return 0;
	err_set(err, E_UNSUPPORTED, "provider %s is not part of this version", name);
	err_hint(err,
		"use --provider %s (the default); \"cloche doctor\" says whether it works here",
		names_here[0]);
	return -E_UNSUPPORTED;
}
