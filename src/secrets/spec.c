/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: NAME[=FROM]@HOST[,HOST...][:Header[,Header...]] is taken apart from its
 * least ambiguous ends: the last '@' (a path may hold one, a host cannot), then the first ':'
 * outside of brackets behind it (an IPv6 literal has brackets). */
#include "secrets/spec.h"

#include "base/strv.h"
#include "policy/host.h"
#include <ctype.h>
#include <errno.h>

/* Replacing these would change what the message is, not who sends it. */
static const struct str framing_headers[] = {STR("host"), STR("content-length"),
	STR("transfer-encoding"), STR("connection"), STR("keep-alive"), STR("proxy-connection"),
	STR("te"), STR("trailer"), STR("upgrade"), STR("expect"), STR("content-encoding"),
	STR("content-type")};

void secret_spec_done(struct secret_spec *spec)
{
	strv_free(spec->scopes);
	strv_free(spec->headers);
	free(spec->name);
	free(spec->from);
	*spec = (struct secret_spec){0};
}

bool spec_name_is_valid(struct str name)
{
	if (name.n == 0 || name.n > 255 || isdigit((unsigned char)name.p[0]))
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
			return false;
	return true;
}

bool spec_header_is_framing(struct str name)
{
	return str_is_one_of(name, framing_headers, ARRAY_SIZE(framing_headers));
}

/* "host:443" must not make a header of the port. Nothing is a number, too. */
static bool is_number(struct str s)
{
	size_t i = 0;

	while (i < s.n && isdigit((unsigned char)s.p[i]))
		i++;
	return i == s.n;
}

bool spec_header_is_valid(struct str pattern)
{
	if (is_number(pattern) || pattern.n > SPEC_HEADER_MAX || spec_header_is_framing(pattern))
		return false;
	for (size_t i = 0; i < pattern.n; i++) {
		char c = pattern.p[i];

		/* token of RFC 9110 section 5.6.2, and brackets for sets */
		if (!isalnum((unsigned char)c) && !memchr("!#$%&'*+-.^_`|~?[]", c, 18))
			return false;
		if (c >= 'A' && c <= 'Z')
			return false;
	}
	return true;
}

/* Takes the text up to the next ',' off *s. */
static struct str take_item(struct str *s, bool *ret_more)
{
	size_t comma = str_chr(*s, ',');
	struct str item = str_prefix(*s, comma);

	*ret_more = comma < s->n;
	*s = str_from_index(*s, comma + 1);
	return item;
}

static int add_scopes(struct secret_spec *spec, struct str s)
{
	bool more = true;

	while (more) {
		struct str item = take_item(&s, &more);
		char text[HOST_MAX + 1];

		if (host_pattern_parse(item, text) < 0 ||
			strv_count(spec->scopes) >= SECRET_PATTERNS_MAX)
			return -EINVAL;
		if (strv_add(&spec->scopes, str_from(text)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_headers(struct secret_spec *spec, struct str s)
{
	bool more = true;

	while (more) {
		struct str item = take_item(&s, &more);
		char text[SPEC_HEADER_MAX];

		if (item.n > sizeof(text) || strv_count(spec->headers) >= SECRET_PATTERNS_MAX)
			return -EINVAL;
		for (size_t i = 0; i < item.n; i++)
			text[i] = (char)tolower((unsigned char)item.p[i]);
		if (!spec_header_is_valid(str_make(text, item.n)))
			return -EINVAL;
		if (strv_add(&spec->headers, str_make(text, item.n)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static size_t last_at(struct str s)
{
	const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

/* First ':' that is not within brackets. */
static size_t find_colon(struct str s)
{
	bool inside = false;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '[')
			inside = true;
		else if (s.p[i] == ']')
			inside = false;
		else if (s.p[i] == ':' && !inside)
			return i;
	}
	return s.n;
}

/* Fills *spec; -EINVAL with what is wrong in *ret_what. */
static int parse(struct str text, struct secret_spec *spec, const char **ret_what)
{
	size_t at = last_at(text), equals, colon;
	struct str source = str_prefix(text, at), target = str_from_index(text, at + 1), name;
	int r;

	equals = str_chr(source, '=');
	name = str_prefix(source, equals);
	*ret_what = "the name has to be letters, digits and '_', as for an environment variable";
	if (!spec_name_is_valid(name))
		return -EINVAL;
	/* Without a host it may be a value that was pasted, which is not to be shown. */
	*ret_what = "no @HOST: a secret has to name the hosts that it may go to";
	if (at == text.n)
		return -EINVAL;
	spec->name = str_dup(name);
	if (!spec->name)
		return -ENOMEM;
	*ret_what = "nothing behind '='";
	if (equals + 1 == source.n || memchr(source.p, '\0', source.n))
		return -EINVAL;
	spec->has_from = equals < source.n;
	spec->from = str_dup(spec->has_from ? str_from_index(source, equals + 1) : name);
	if (!spec->from)
		return -ENOMEM;
	colon = find_colon(target);
	*ret_what = "a scope is not a host name or host pattern";
	r = add_scopes(spec, str_prefix(target, colon));
	if (r < 0)
		return r;
	*ret_what = "what is behind ':' is no header that a secret may be put in; a host has "
		    "neither scheme nor port here";
	return add_headers(
		spec, colon < target.n ? str_from_index(target, colon + 1) : STR("authorization"));
}

int secret_spec_parse(struct str text, struct secret_spec *ret, struct cloche_err *err)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	const char *what = NULL;
	int r = parse(text, &spec, &what);

	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0) {
		(void)err_set(err, E_USAGE, "secret%s%s: %s", spec.name ? " " : "",
			spec.name ? spec.name : "", what);
		err_hint(err, "NAME[=FROM]@HOST[,HOST...][:Header[,Header...]]");
		return -E_USAGE;
	}
	*ret = spec;
	spec = (struct secret_spec){0};
	return 0;
}
