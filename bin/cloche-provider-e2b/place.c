/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>

#define ENVD_PORT "49983"

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
	struct place p = {.text = str_from(text)};
	struct url url;
	int r;

	p.is_plain = str_starts(p.text, STR("http://"));
	p.is_domain = !p.is_plain && !str_starts(p.text, STR("https://"));
	if (p.is_domain) {
		if (!url_is_host(p.text) || str_chr(p.text, '.') == p.text.n)
			return place_refuse("", err);
		*ret = p;
		return 0;
	}
	r = url_read(p.text, &url);
	if (r < 0)
		return place_refuse(r == -EPERM ? text : "", err);
	p.text = url.text;
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
	if (!url_is_host(domain) || !place_is_below(domain, p->text))
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
