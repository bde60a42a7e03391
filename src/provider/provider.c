/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/provider.h"

#define PROVIDER_OPS(name) &name##_provider,
static const struct provider *const providers[] = {PROVIDERS(PROVIDER_OPS)};

const struct provider *provider_find(struct str name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(providers); i++)
		if (str_eq(name, str_from(providers[i]->name)))
			return providers[i];
	return NULL;
}

struct room *room_free(struct room *r)
{
	return r ? r->provider->destroy(r) : NULL;
}
