/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/signing.h"

#include <ctype.h>

/* A key id stands between '=', '/' and ',' in headers and URLs, so it must not hold these. */
static bool is_key_id(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '_' &&
			s.p[i] != '.')
			return false;
	return s.n <= 128;
}

static int signing_add_value(struct secret_set *set, const struct signing_spec *spec, size_t i,
	struct str value, struct cloche_err *err)
{
	const struct secret_spec one = {.name = (char *)(uintptr_t)spec->names[i],
		.scopes = spec->scopes,
		.allow_foreign_credentials = spec->allow_foreign_credentials,
		.role = SECRET_AWS_KEY_ID + (unsigned)i};

	if (i == 0 ? !is_key_id(value) : !str_is_visible(value))
		return err_set(err, E_CONFIG, "secret %s: not the form of %s", spec->names[i],
			i == 0 ? "an access key id" : "a secret key or token");
	return secret_set_add(set, &one, value, STR_NULL, err);
}

int secret_set_add_signing(struct secret_set *set, const struct signing_spec *spec,
	const struct str values[SIGNING_VALUES], struct cloche_err *err)
{
	size_t before = secret_set_count(set);
	int r = 0;

	for (size_t i = 0; r == 0 && i < SIGNING_VALUES; i++)
		if (i < 2 || values[i].n > 0)
			r = signing_add_value(set, spec, i, values[i], err);
	if (r < 0)
		secret_set_shrink(set, before);
	return r;
}

static enum secret_role role_at(const struct secret_set *set, size_t i)
{
	return i < secret_set_count(set) ? secret_set_get(set, i)->spec.role : SECRET_MASKED;
}

size_t secret_set_group(const struct secret_set *set, size_t i)
{
	size_t n = 1;

	while (role_at(set, i + n) > SECRET_AWS_KEY_ID)
		n++;
	return n;
}

bool secret_set_next_signing(
	const struct secret_set *set, size_t *at, struct signing_credential *ret)
{
	for (; *at < secret_set_count(set); *at += 1) {
		size_t n = secret_set_group(set, *at);

		if (role_at(set, *at) != SECRET_AWS_KEY_ID || n < 2)
			continue;
		ret->key_id = secret_set_get(set, *at);
		ret->secret_key = secret_set_get(set, *at + 1);
		ret->token = n > 2 ? secret_set_get(set, *at + 2) : NULL;
		*at += n;
		return true;
	}
	return false;
}
