/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#define ENVD_PORT "49983"

static bool place_is_host(struct str host)
{
	return host.n > 0 && host.n <= PLACE_HOST_MAX && str_is_alnum(host.p[0]) &&
	       str_is_alnum(host.p[host.n - 1]) &&
	       str_is_all(host, STR_LOWER STR_UPPER STR_DIGITS "-.") &&
	       str_find(host, STR("..")) == host.n;
}

static bool place_is_loopback(struct str host)
{
	static const struct str names[] = {STR("127.0.0.1"), STR("localhost"), STR("[::1]")};

	return str_is_one_of(host, names, ARRAY_SIZE(names));
}

/* Take HOST or [ADDRESS] off the front; the null view if there is none. */
static struct str place_take_host(struct str *rest)
{
	size_t n = 0;

	while (n < rest->n && rest->p[n] != ':' && rest->p[n] != '/' && rest->p[0] != '[')
		n++;
	if (rest->n && rest->p[0] == '[') {
		n = str_chr(*rest, ']') + 1;
		if (n > rest->n || !str_is_all(str_make(rest->p + 1, n - 2), "0123456789abcdef:"))
			return STR_NULL;
	} else if (!place_is_host(str_prefix(*rest, n))) {
		return STR_NULL;
	}
	*rest = str_from_index(*rest, n);
	return str_make(rest->p - n, n);
}

/* Return whether what follows the host is nothing but a port and a path. */
static bool place_is_tail(struct str tail)
{
	size_t slash = str_chr(tail, '/');
	struct str port = str_prefix(tail, slash), path = str_from_index(tail, slash);

	if (port.n && (port.n < 2 || port.n > 6 || port.p[0] != ':' ||
			      !str_is_all(str_from_index(port, 1), STR_DIGITS)))
		return false;
	return str_is_all(path, STR_LOWER STR_UPPER STR_DIGITS "-._~/") &&
	       str_find(path, STR("..")) == path.n;
}

static int place_refuse(const char *text, struct cloche_err *err)
{
	if (str_starts(str_from(text), STR("http://")))
		err_set(err, E_USAGE, "the key is not sent without TLS, but to this machine");
	else
		err_set(err, E_USAGE, "this is neither a domain nor the URL of a service");
	err_hint(err, "--place e2b.app, or --place https://HOST[:PORT] of another service that "
		      "speaks the protocol of E2B");
	return -E_USAGE;
}

int place_read(const char *text, struct place *ret, struct cloche_err *err)
{
	struct str rest = str_from(text), host;
	struct place p = {.text = rest};

	if (rest.n > PLACE_TEXT_MAX)
		return place_refuse("", err);
	p.is_plain = str_starts(rest, STR("http://"));
	p.is_domain = !p.is_plain && !str_starts(rest, STR("https://"));
	if (p.is_domain) {
		if (!place_is_host(rest) || str_chr(rest, '.') == rest.n)
			return place_refuse("", err);
		*ret = p;
		return 0;
	}
	rest = str_from_index(rest, str_find(rest, STR("//")) + 2);
	host = place_take_host(&rest);
	if (!host.n || !place_is_tail(rest) || (p.is_plain && !place_is_loopback(host)))
		return place_refuse(p.is_plain && host.n ? text : "", err);
	while (p.text.n && p.text.p[p.text.n - 1] == '/')
		p.text.n--;
	*ret = p;
	return 0;
}

int place_add_api(const struct place *p, struct buf *out)
{
	return buf_printf(out, "%s%.*s", p->is_domain ? "https://api." : "", STR_FMT(p->text));
}

/* Return whether host is the domain, or has it at its end. */
static bool place_is_below(struct str host, struct str domain)
{
	return str_ends(host, domain) &&
	       (host.n == domain.n || host.p[host.n - domain.n - 1] == '.');
}

int place_add_envd(const struct place *p, struct str sandbox, struct str domain, struct buf *out)
{
	if (!p->is_domain)
		return place_add_api(p, out);
	if (!place_is_host(domain) || !place_is_below(domain, p->text))
		domain = p->text;
	return buf_printf(
		out, "https://" ENVD_PORT "-%.*s.%.*s", STR_FMT(sandbox), STR_FMT(domain));
}

bool place_is_id(struct str id)
{
	return id.n > 0 && id.n <= PLACE_ID_MAX && str_is_alnum(id.p[0]) &&
	       str_is_all(id, STR_LOWER STR_UPPER STR_DIGITS "-");
}

bool place_is_template(struct str name)
{
	return name.n > 0 && name.n <= PLACE_ID_MAX && str_is_alnum(name.p[0]) &&
	       str_is_all(name, STR_LOWER STR_UPPER STR_DIGITS "-_.:/");
}
