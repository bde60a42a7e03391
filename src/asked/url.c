/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/url.h"
#include "base/parse.h"

#include <errno.h>

bool url_is_host(struct str host)
{
	return host.n > 0 && host.n <= URL_HOST_MAX && str_is_alnum(host.p[0]) &&
	       str_is_alnum(host.p[host.n - 1]) &&
	       str_is_all(host, STR_LOWER STR_UPPER STR_DIGITS "-.") &&
	       str_find(host, STR("..")) == host.n;
}

static bool url_is_loopback(struct str host)
{
	static const struct str names[] = {STR("127.0.0.1"), STR("localhost"), STR("[::1]")};

	return str_is_one_of(host, names, ARRAY_SIZE(names));
}

/* Take HOST or [ADDRESS] off the front; the null view if there is none. */
static struct str url_take_host(struct str *rest)
{
	size_t n = 0;

	while (n < rest->n && rest->p[n] != ':' && rest->p[n] != '/' && rest->p[0] != '[')
		n++;
	if (rest->n && rest->p[0] == '[') {
		n = str_chr(*rest, ']') + 1;
		if (n > rest->n || !str_is_all(str_make(rest->p + 1, n - 2), "0123456789abcdef:"))
			return STR_NULL;
	} else if (!url_is_host(str_prefix(*rest, n))) {
		return STR_NULL;
	}
	*rest = str_from_index(*rest, n);
	return str_make(rest->p - n, n);
}

/* Take what follows the host, which is nothing but a port and a path. */
static int url_take_tail(struct url *u, struct str tail)
{
	size_t slash = str_chr(tail, '/');
	struct str port = str_prefix(tail, slash);
	uint64_t number = 0;

	u->path = str_from_index(tail, slash);
	while (u->path.n && u->path.p[u->path.n - 1] == '/')
		u->path.n--;
	if (port.n &&
		(port.n < 2 || port.p[0] != ':' ||
			parse_u64(str_from_index(port, 1), UINT16_MAX, &number) < 0 || number == 0))
		return -EINVAL;
	u->port = (uint16_t)number;
	return str_is_all(u->path, STR_LOWER STR_UPPER STR_DIGITS "-._~/") &&
			       str_find(u->path, STR("..")) == u->path.n
		       ? 0
		       : -EINVAL;
}

int url_read(struct str text, struct url *ret)
{
	struct url u = {.text = text, .is_plain = str_starts(text, STR("http://"))};
	struct str rest = text;

	if (text.n > URL_TEXT_MAX || (!u.is_plain && !str_starts(text, STR("https://"))))
		return -EINVAL;
	rest = str_from_index(rest, str_find(rest, STR("//")) + 2);
	u.host = url_take_host(&rest);
	if (!u.host.n || url_take_tail(&u, rest) < 0)
		return -EINVAL;
	if (u.is_plain && !url_is_loopback(u.host))
		return -EPERM;
	while (u.text.n && u.text.p[u.text.n - 1] == '/')
		u.text.n--;
	*ret = u;
	return 0;
}
