/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/names.h"
#include "base/hash.h"
#include "dns/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <utlist.h>

struct dns_named {
	UT_hash_handle hh;
	struct dns_named *prev, *next; /* least recently used first */
	struct dns_result result;
	size_t name_len;
	char name[];
};

static void names_forget(struct dns_names *m, struct dns_named *e)
{
	HASH_DEL(m->map, e);
	DL_DELETE(m->order, e);
	m->count--;
	free(e);
}

void dns_names_done(struct dns_names *m)
{
	while (m->order)
		names_forget(m, m->order);
}

static struct dns_named *find(const struct dns_names *m, struct str name)
{
	struct dns_named *e;

	HASH_FIND(hh, m->map, name.p, name.n, e);
	return e;
}

const struct dns_result *dns_names_get(struct dns_names *m, struct str name, uint64_t now)
{
	struct dns_named *e = find(m, name);

	if (!e)
		return NULL;
	if (e->result.expires_usec <= now) {
		names_forget(m, e);
		return NULL;
	}
	DL_DELETE(m->order, e);
	DL_APPEND(m->order, e);
	return &e->result;
}

int dns_names_put(struct dns_names *m, struct str name, const struct dns_result *result)
{
	struct dns_named *e = find(m, name);

	if (e) {
		e->result = *result;
		return 0;
	}
	e = calloc(1, sizeof(*e) + name.n + 1);
	if (!e)
		return -ENOMEM;
	memcpy(e->name, name.p, name.n);
	e->name_len = name.n;
	e->result = *result;
	HASH_ADD_KEYPTR(hh, m->map, e->name, e->name_len, e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	DL_APPEND(m->order, e);
	if (++m->count > m->max)
		names_forget(m, m->order);
	return 0;
}

void dns_result_add(struct dns_result *r, const struct sockaddr *addr)
{
	union dns_addr a;

	/* Clear the whole union, not only its first member: addresses are compared as a whole. */
	memset(&a, 0, sizeof(a));
	if (r->n >= DNS_ADDRS_MAX)
		return;
	if (addr->sa_family == AF_INET)
		memcpy(&a.v4, addr, sizeof(a.v4));
	else if (addr->sa_family == AF_INET6)
		memcpy(&a.v6, addr, sizeof(a.v6));
	else
		return;
	if (addr->sa_family == AF_INET)
		a.v4.sin_port = 0;
	else
		a.v6.sin6_port = 0;
	for (unsigned i = 0; i < r->n; i++)
		if (memcmp(&r->addrs[i], &a, sizeof(a)) == 0)
			return;
	r->addrs[r->n++] = a;
}

bool dns_result_from_text(struct dns_result *r, struct str text)
{
	union dns_addr a = {0};
	char z[INET6_ADDRSTRLEN];

	if (text.n == 0 || text.n >= sizeof(z) || memchr(text.p, '\0', text.n))
		return false;
	memcpy(z, text.p, text.n);
	z[text.n] = '\0';
	if (inet_pton(AF_INET, z, &a.v4.sin_addr) == 1)
		a.v4.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, z, &a.v6.sin6_addr) == 1)
		a.v6.sin6_family = AF_INET6;
	else
		return false;
	*r = (struct dns_result){.expires_usec = USEC_INFINITY};
	dns_result_add(r, &a.sa);
	return true;
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int dns_name_canonical(struct str name, char *ret, struct str *ret_name)
{
	size_t label = 0;

	if (name.n && name.p[name.n - 1] == '.')
		name.n--;
	if (name.n == 0 || name.n > DNS_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i < name.n; i++) {
		char c = str_lower_char(name.p[i]);

		ret[i] = c;
		if (c == '.' ? label == 0 : !is_label_char(c))
			return -EINVAL;
		label = c == '.' ? 0 : label + 1;
		if (label > 63)
			return -EINVAL;
	}
	if (label == 0)
		return -EINVAL;
	ret[name.n] = '\0';
	*ret_name = str_make(ret, name.n);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Take the next word off a line; it is empty at the end of the line. */
static struct str next_word(struct str *line)
{
	size_t n = 0;
	struct str word;

	while (line->n && is_blank(line->p[0]))
		*line = str_from_index(*line, 1);
	while (n < line->n && !is_blank(line->p[n]))
		n++;
	word = str_prefix(*line, n);
	*line = str_from_index(*line, n);
	return word;
}

static int hosts_line(struct dns_names *m, struct str line)
{
	char canonical[DNS_NAME_MAX + 1];
	struct dns_result addr, joined;
	struct str word;

	line = str_prefix(line, str_chr(line, '#'));
	if (!dns_result_from_text(&addr, next_word(&line)))
		return 0;
	while ((word = next_word(&line)).n) {
		struct dns_named *known;

		if (dns_name_canonical(word, canonical, &word) < 0)
			continue;
		known = find(m, word);
		joined = known ? known->result : (struct dns_result){.expires_usec = USEC_INFINITY};
		dns_result_add(&joined, &addr.addrs[0].sa);
		if (dns_names_put(m, word, &joined) < 0)
			return -ENOMEM;
	}
	return 0;
}

int dns_hosts_parse(struct dns_names *m, struct str text)
{
	while (text.n) {
		int r = hosts_line(m, str_next_line(&text));

		if (r < 0)
			return r;
	}
	return 0;
}

int dns_servers_parse(struct buf *ret, struct str text)
{
	enum { SERVERS_MAX = 3 };
	unsigned n = 0;
	int r = 0;

	while (text.n && n < SERVERS_MAX && r == 0) {
		struct str line = str_next_line(&text), word;
		struct dns_result address;

		if (!str_eq(next_word(&line), STR("nameserver")))
			continue;
		word = next_word(&line);
		if (!dns_result_from_text(&address, word))
			continue;
		if (address.addrs[0].sa.sa_family == AF_INET6)
			r = buf_printf(ret, "%s[%.*s]", n ? "," : "", STR_FMT(word));
		else
			r = buf_printf(ret, "%s%.*s", n ? "," : "", STR_FMT(word));
		n++;
	}
	return r < 0 || n > 0 ? r : buf_add_str(ret, STR("127.0.0.1"));
}
