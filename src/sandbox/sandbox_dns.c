/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "sandbox/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { MAX_DNS = 8 };

/* Append ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, always with a port. */
static int dns_server_add(struct buf *out, struct str text)
{
	uint8_t address[sizeof(struct in6_addr)];
	char name[INET6_ADDRSTRLEN + 1];
	struct str host, port = STR("53"), rest;
	bool v6;
	uint64_t number;

	if (text.n > 0 && text.p[0] == '[') {
		text = str_from_index(text, 1);
		host = str_prefix(text, str_chr(text, ']'));
		if (host.n == text.n)
			return -EINVAL;
		rest = str_from_index(text, host.n + 1);
	} else {
		host = str_prefix(text, str_chr(text, ':'));
		rest = str_from_index(text, host.n);
		if (rest.n > 0 && str_chr(str_from_index(rest, 1), ':') < rest.n - 1) {
			host = text; /* IPv6 without a port */
			rest = STR_NULL;
		}
	}
	if (rest.n > 0 && rest.p[0] != ':')
		return -EINVAL;
	if (rest.n > 0)
		port = str_from_index(rest, 1);
	v6 = str_chr(host, ':') < host.n;
	if (host.n >= sizeof(name) || parse_u64(port, 65535, &number) < 0 || number == 0)
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", STR_FMT(host));
	if (strlen(name) != host.n || inet_pton(v6 ? AF_INET6 : AF_INET, name, address) != 1)
		return -EINVAL;
	return buf_printf(
		out, v6 ? "%s[%s]:%u" : "%s%s:%u", buf_len(out) ? "," : "", name, (unsigned)number);
}

int sandbox_set_upstream_dns(cloche_sandbox *sb, const char *servers, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1024);
	struct str rest = str_from(servers ? servers : "");
	bool more = true;

	if (!servers)
		return set_string(&sb->upstream_dns, NULL, err);
	for (size_t n = 0; more; n++) {
		struct str one = str_prefix(rest, str_chr(rest, ','));

		more = one.n < rest.n;
		rest = str_from_index(rest, MIN(one.n + 1, rest.n));
		if (n < MAX_DNS && dns_server_add(&text, one) == 0)
			continue;
		(void)err_set(err, E_USAGE, "DNS servers (--dns) \"%s\": not ADDRESS[:PORT],...",
			servers);
		err_hint(
			err, "1 to %d addresses, as in 1.1.1.1,[2606:4700:4700::1111]:53", MAX_DNS);
		return -E_USAGE;
	}
	if (!buf_cstr(&text))
		return err_nomem(err);
	return set_string(&sb->upstream_dns, buf_data(&text), err);
}
