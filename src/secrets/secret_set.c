/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a short array, with one invariant that makes the rest simple: no surrogate
 * contains, is contained in, or equals another surrogate or any real value of the set. So a
 * surrogate that is found means one secret, and replacing one never makes or breaks another. */
#include "secrets/secret_set.h"

#include "base/strv.h"
#include "policy/glob.h"
#include "secrets/spec.h"
#include "secrets/surrogate.h"
#include <errno.h>

/* Drawing fails only if the values leave hardly any room, such as eight digits many times over.
 */
#define DRAW_TRIES 100
/* Registries hand out passwords of two or three thousand bytes. */
#define BASIC_VALUE_MAX 4096

struct secret_set {
	struct masked_secret *v[SECRET_SET_MAX];
	size_t n;
};

static struct masked_secret *member_free(struct masked_secret *m)
{
	if (m) {
		secret_spec_done(&m->spec);
		secret_free(m->value);
		secret_free(m->last);
		free((void *)(uintptr_t)m->surrogate.p);
		free(m);
	}
	return NULL;
}
DEFINE_CLEANUP(struct masked_secret, member_free)

struct secret_set *secret_set_new(void)
{
	return calloc(1, sizeof(struct secret_set));
}

struct secret_set *secret_set_free(struct secret_set *set)
{
	if (!set)
		return NULL;
	for (size_t i = 0; i < set->n; i++)
		member_free(set->v[i]);
	free(set);
	return NULL;
}

size_t secret_set_count(const struct secret_set *set)
{
	return set->n;
}

void secret_set_shrink(struct secret_set *set, size_t n)
{
	while (set->n > n)
		member_free(set->v[--set->n]);
}

const struct masked_secret *secret_set_get(const struct secret_set *set, size_t i)
{
	return set->v[i];
}

const struct masked_secret *secret_set_find(const struct secret_set *set, struct str name)
{
	for (size_t i = 0; i < set->n; i++)
		if (str_eq(str_from(set->v[i]->spec.name), name))
			return set->v[i];
	return NULL;
}

bool masked_secret_covers(const struct masked_secret *m, const struct host *host)
{
	for (char **scope = m->spec.scopes; scope && *scope; scope++)
		if (host_pattern_matches(str_from(*scope), host))
			return true;
	return false;
}

bool masked_secret_fits_basic(const struct masked_secret *m)
{
	if (m->surrogate.n > BASIC_VALUE_MAX)
		return false;
	for (char **header = m->spec.headers; header && *header; header++) {
		struct str pattern = str_from(*header);

		if (glob_match_or_equal(pattern, STR("authorization")) ||
			glob_match_or_equal(pattern, STR("proxy-authorization")))
			return true;
	}
	return false;
}

static bool overlaps(struct str a, struct str b)
{
	return str_find(a, b) < a.n || str_find(b, a) < b.n;
}

/* Whether a surrogate for the value of `own` (which may be in the set already) would collide with
 * anything. */
static bool surrogate_collides(const struct secret_set *set, const struct masked_secret *own,
	struct str value, struct str surrogate)
{
	if (overlaps(surrogate, value))
		return true;
	for (size_t i = 0; i < set->n; i++)
		if ((set->v[i] != own && overlaps(surrogate, set->v[i]->surrogate)) ||
			overlaps(surrogate, secret_reveal(set->v[i]->value)))
			return true;
	return false;
}

static bool value_collides(const struct secret_set *set, struct str value)
{
	for (size_t i = 0; i < set->n; i++)
		if (overlaps(value, set->v[i]->surrogate))
			return true;
	return false;
}

static int copy_spec(const struct secret_spec *from, struct secret_spec *to)
{
	to->name = str_dup(str_from(from->name));
	to->from = str_dup(str_from(from->from ? from->from : from->name));
	to->allow_foreign_credentials = from->allow_foreign_credentials;
	to->role = from->role;
	if (!to->name || !to->from || strv_copy(from->scopes, &to->scopes) < 0)
		return -ENOMEM;
	return strv_copy(from->headers, &to->headers);
}

static bool role_follows(const struct secret_set *set, enum secret_role role)
{
	if (role == SECRET_MASKED || role == SECRET_AWS_KEY_ID)
		return true;
	return set->n > 0 && set->v[set->n - 1]->spec.role == role - 1;
}

int secret_set_check(
	const struct secret_set *set, const struct secret_spec *spec, struct cloche_err *err)
{
	size_t n_scopes = strv_count(spec->scopes), n_headers = strv_count(spec->headers);
	char text[HOST_MAX + 1];

	if (!spec->name || !spec_name_is_valid(str_from(spec->name)))
		return err_set(err, E_CONFIG, "a secret's name is not that of a variable");
	if (set->n >= SECRET_SET_MAX)
		return err_set(err, E_CONFIG, "more than %d secrets", SECRET_SET_MAX);
	if (secret_set_find(set, str_from(spec->name)))
		return err_set(err, E_CONFIG, "secret %s is there twice", spec->name);
	if (n_scopes == 0 || n_scopes > SECRET_PATTERNS_MAX ||
		(n_headers == 0) != (spec->role != SECRET_MASKED) ||
		n_headers > SECRET_PATTERNS_MAX)
		return err_set(err, E_CONFIG, "secret %s needs 1 to %d hosts and headers",
			spec->name, SECRET_PATTERNS_MAX);
	if (!role_follows(set, spec->role))
		return err_set(err, E_CONFIG, "secret %s: a part of credentials without the others",
			spec->name);
	for (size_t i = 0; i < n_scopes; i++)
		if (host_pattern_parse(str_from(spec->scopes[i]), text) < 0 ||
			strcmp(text, spec->scopes[i]) != 0)
			return err_set(err, E_CONFIG, "secret %s: scope %zu is not a host pattern",
				spec->name, i + 1);
	for (size_t i = 0; i < n_headers; i++)
		if (!spec_header_is_valid(str_from(spec->headers[i])))
			return err_set(err, E_CONFIG, "secret %s: header %zu cannot hold a secret",
				spec->name, i + 1);
	return 0;
}

/* How long the surrogate of a member is. */
static size_t surrogate_length(const struct masked_secret *m, struct str value)
{
	return m->spec.role == SECRET_AWS_TOKEN ? SURROGATE_TOKEN_LEN : value.n;
}

/* Whether a surrogate that came from elsewhere can stand in for value. */
static bool surrogate_fits(const struct secret_set *set, const struct masked_secret *m,
	struct str value, struct str surrogate)
{
	return surrogate.n == surrogate_length(m, value) && str_is_visible(surrogate) &&
	       !surrogate_collides(set, m, value, surrogate);
}

static int draw_surrogate(const struct secret_set *set, struct surrogate_source *source,
	const struct masked_secret *m, struct str value, char *ret)
{
	size_t n = surrogate_length(m, value);

	for (int i = 0; i < DRAW_TRIES; i++) {
		if (m->spec.role == SECRET_AWS_TOKEN)
			surrogate_make_token_from(source, value, ret);
		else
			surrogate_make_from(source, value, ret);
		if (!surrogate_collides(set, m, value, str_make(ret, n)))
			return 0;
	}
	return -EEXIST;
}

static int set_surrogate(const struct secret_set *set, struct masked_secret *m, struct str value,
	struct str given, struct cloche_err *err)
{
	size_t n = surrogate_length(m, value);
	_cleanup_(freep) char *text = malloc(n + 1);

	if (!text)
		return err_nomem(err);
	text[n] = '\0';
	if (given.p) {
		if (!surrogate_fits(set, m, value, given))
			return err_set(err, E_CONFIG, "secret %s: the surrogate does not fit",
				m->spec.name);
		memcpy(text, given.p, given.n);
	} else if (draw_surrogate(set, NULL, m, value, text) < 0) {
		return err_set(err, E_CONFIG,
			"secret %s: no surrogate is distinct from all other secrets", m->spec.name);
	}
	m->surrogate = str_make(TAKE_PTR(text), n);
	return 0;
}

static int settle_member(struct secret_set *set, struct masked_secret *m,
	const uint8_t key[SHA256_BYTES], struct str context, struct cloche_err *err)
{
	struct surrogate_source source;
	struct str value = secret_reveal(m->value);
	size_t n = surrogate_length(m, value);
	_cleanup_(freep) char *text = calloc(1, n + 1);
	int r;

	if (!text)
		return err_nomem(err);
	surrogate_source_init(&source, key, context, str_from(m->spec.name), value);
	r = draw_surrogate(set, &source, m, value, text);
	surrogate_source_done(&source);
	if (r < 0)
		return err_set(err, E_CONFIG,
			"secret %s: no surrogate is distinct from all other secrets", m->spec.name);
	free((void *)(uintptr_t)m->surrogate.p);
	m->surrogate = str_make(TAKE_PTR(text), n);
	return 0;
}

int secret_set_settle(struct secret_set *set, const uint8_t key[SHA256_BYTES], struct str context,
	struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->n; i++)
		if (!set->v[i]->live)
			r = settle_member(set, set->v[i], key, context, err);
	return r;
}

static int secret_set_add_value(struct secret_set *set, const struct secret_spec *spec,
	struct str value, struct str surrogate, struct masked_secret **ret, struct cloche_err *err)
{
	_cleanup_(member_freep) struct masked_secret *m = NULL;
	int r = secret_set_check(set, spec, err);

	if (r == 0)
		r = surrogate_check_value(spec->name, value, err);
	if (r < 0)
		return r;
	if (value_collides(set, value))
		return err_set(err, E_CONFIG,
			"secret %s: the value holds another secret's surrogate", spec->name);
	m = calloc(1, sizeof(*m));
	if (!m || copy_spec(spec, &m->spec) < 0)
		return err_nomem(err);
	m->value = secret_new(value.p, value.n);
	if (!m->value)
		return err_nomem(err);
	m->known = true;
	r = set_surrogate(set, m, value, surrogate, err);
	if (r < 0)
		return r;
	*ret = m;
	set->v[set->n++] = TAKE_PTR(m);
	return 0;
}

int secret_set_add(struct secret_set *set, const struct secret_spec *spec, struct str value,
	struct str surrogate, struct cloche_err *err)
{
	struct masked_secret *m;

	return secret_set_add_value(set, spec, value, surrogate, &m, err);
}

/* Something that looks like example and stands for nothing. */
static struct secret *make_unknown(struct str example)
{
	_cleanup_(freep) char *text = malloc(example.n);

	if (!text)
		return NULL;
	surrogate_make(example, text);
	return secret_new(text, example.n);
}

int secret_set_add_live(struct secret_set *set, const struct secret_spec *spec, struct str example,
	struct str surrogate, struct cloche_err *err)
{
	_cleanup_(secret_freep) struct secret *unknown = NULL;
	struct masked_secret *m;
	int r;

	if (surrogate_check_value(spec->name, example, NULL) < 0)
		return err_set(err, E_CONFIG, "secret %s looks like nothing", spec->name);
	unknown = make_unknown(example);
	if (!unknown)
		return err_nomem(err);
	r = secret_set_add_value(set, spec, secret_reveal(unknown), surrogate, &m, err);
	if (r == 0) {
		m->live = true;
		m->known = false;
	}
	return r;
}

void secret_set_may_renew(struct secret_set *set, size_t i)
{
	set->v[i]->renewable = true;
}

int secret_set_renew(struct secret_set *set, size_t i, struct secret *value, struct cloche_err *err)
{
	_cleanup_(secret_freep) struct secret *taken = value;
	struct masked_secret *m = set->v[i];
	int r = value ? surrogate_check_value(m->spec.name, secret_reveal(value), err) : 0;
	bool real;

	if (r == 0 && value && value_collides(set, secret_reveal(value)))
		r = err_set(err, E_CONFIG, "secret %s: the value holds a surrogate", m->spec.name);
	real = r == 0 && value;
	value = real ? TAKE_PTR(taken) : make_unknown(m->surrogate);
	if (!value)
		return r < 0 ? r : err_nomem(err);
	/* The value before is looked for in answers as long as it may be good. */
	secret_free(m->known ? m->last : m->value);
	if (m->known)
		m->last = m->value;
	m->value = value;
	m->known = real;
	return r;
}
