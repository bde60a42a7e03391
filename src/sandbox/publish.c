/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/strv.h"
#include "sandbox/sandbox.h"

#include <arpa/inet.h>

enum { PUBLISHED_MAX = 64 };

bool sandbox_published(const char *text, struct sandbox_published *ret)
{
	struct str rest = str_from(text), part[3];
	struct in_addr address;
	uint64_t host, guest;
	size_t n = 0;

	for (; n < 3; n++) {
		size_t colon = str_chr(rest, ':');

		part[n] = str_prefix(rest, colon);
		if (colon == rest.n)
			break;
		rest = str_from_index(rest, colon + 1);
	}
	if (n < 1 || n > 2 || parse_u64(part[n], UINT16_MAX, &guest) < 0 || guest == 0 ||
		parse_u64(part[n - 1], UINT16_MAX, &host) < 0)
		return false;
	*ret = (struct sandbox_published){
		.address = "127.0.0.1", .host = (uint16_t)host, .guest = (uint16_t)guest};
	if (n == 2)
		str_copy(ret->address, sizeof(ret->address), part[0]);
	return inet_pton(AF_INET, ret->address, &address) == 1;
}

int sandbox_publish(cloche_sandbox *sb, const char *value, struct cloche_err *err)
{
	struct sandbox_published p;

	if (!sandbox_published(value, &p)) {
		err_set(err, E_USAGE, "--publish is [ADDR:]HOST:GUEST, not \"%.100s\"", value);
		err_hint(err, "for example: -p 8080:80");
		return -E_USAGE;
	}
	if (strncmp(p.address, "127.", 4) != 0) {
		err_set(err, E_USAGE,
			"--publish %s: only addresses of loopback (127.0.0.1) lead inside", value);
		err_hint(err, "let a proxy of yours listen on %s and ask this port", p.address);
		return -E_USAGE;
	}
	if (strv_count(sb->published) >= PUBLISHED_MAX)
		return err_set(err, E_LIMIT, "more than %d ports", PUBLISHED_MAX);
	return strv_add(&sb->published, str_from(value)) < 0 ? err_nomem(err) : 0;
}
