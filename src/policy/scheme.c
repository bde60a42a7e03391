/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "policy/allowlist.h"

static const struct scheme {
	enum policy_scheme scheme;
	const char *word;
	uint16_t port; /* 0: none */
} schemes[] = {
	{POLICY_HTTPS, "https", 443},
	{POLICY_HTTP, "http", 80},
	{POLICY_TCP, "tcp", 0},
	{POLICY_SSH, "ssh", 22},
};

static const struct scheme *scheme_get(enum policy_scheme scheme)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (schemes[i].scheme == scheme)
			return &schemes[i];
	return NULL;
}

const char *policy_scheme_word(enum policy_scheme scheme)
{
	const struct scheme *s = scheme_get(scheme);

	return s ? s->word : "";
}

uint16_t policy_scheme_port(enum policy_scheme scheme)
{
	const struct scheme *s = scheme_get(scheme);

	return s ? s->port : 0;
}

bool policy_scheme_find(struct str word, enum policy_scheme *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (str_eq(word, str_from(schemes[i].word))) {
			*ret = schemes[i].scheme;
			return true;
		}
	return false;
}
