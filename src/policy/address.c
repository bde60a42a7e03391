/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every address becomes 16 bytes (IPv4 as ::ffff:a.b.c.d). An IPv4 address
 * embedded in IPv6 (mapped, NAT64) is unwrapped first. A table then says which ranges are special
 * and how strongly: `allow_private: true` opens SOFT ranges, only a range that names them opens
 * NAMED and FIRM ones, and nothing opens NEVER ones. Some networks use NAMED ones for hosts of
 * their own; a metadata service or a neighbour that is FIRM is never suggested to anybody. Every
 * address is in some row: what is left of IPv4 and of 2000::/3 is OPEN; the rest of IPv6 is not
 * globally reachable. Registries: IANA's IPv4 and IPv6 special-purpose address registries (RFC 6890
 * and updates). */
#include "policy/address.h"

#include "base/parse.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum strength { OPEN, SOFT, NAMED, FIRM, NEVER };

struct special {
	struct cidr range;
	enum strength strength;
	const char *what;
};

#define V4(a, b, c, d, bits, strength, what)                                                       \
	{                                                                                          \
		{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}, 96 + (bits)}, strength,   \
			what                                                                       \
	}
#define V6(h0, h1, h2, h3, bits, strength, what)                                                   \
	{                                                                                          \
		{{(h0) >> 8, (h0)&0xff, (h1) >> 8, (h1)&0xff, (h2) >> 8, (h2)&0xff, (h3) >> 8,     \
			 (h3)&0xff},                                                               \
			bits},                                                                     \
			strength, what                                                             \
	}

/* First match counts, so the narrow ones come first. */
static const struct special specials[] = {
	V4(255, 255, 255, 255, 32, NEVER, "broadcast address"),
	V4(0, 0, 0, 0, 8, NEVER, "unspecified address"),
	V4(224, 0, 0, 0, 4, NEVER, "multicast address"),
	V4(169, 254, 169, 254, 32, FIRM, "cloud metadata address"),
	V4(169, 254, 170, 2, 32, FIRM, "cloud metadata address"),
	V4(168, 63, 129, 16, 32, FIRM, "cloud metadata address"),
	V4(100, 100, 100, 200, 32, FIRM, "cloud metadata address"),
	V4(192, 0, 0, 192, 32, FIRM, "cloud metadata address"),
	V4(169, 254, 0, 0, 16, FIRM, "link-local address"),
	V4(127, 0, 0, 0, 8, SOFT, "loopback address"),
	V4(10, 0, 0, 0, 8, SOFT, "private address"),
	V4(172, 16, 0, 0, 12, SOFT, "private address"),
	V4(192, 168, 0, 0, 16, SOFT, "private address"),
	V4(100, 64, 0, 0, 10, SOFT, "shared address space (carrier-grade NAT)"),
	V4(192, 0, 0, 0, 24, FIRM, "reserved address"),
	V4(192, 0, 2, 0, 24, NAMED, "documentation address"),
	V4(198, 51, 100, 0, 24, NAMED, "documentation address"),
	V4(203, 0, 113, 0, 24, NAMED, "documentation address"),
	V4(192, 88, 99, 0, 24, FIRM, "6to4 relay address"),
	V4(198, 18, 0, 0, 15, NAMED, "benchmarking address"),
	V4(240, 0, 0, 0, 4, NAMED, "reserved address"),
	V6(0xff00, 0, 0, 0, 8, NEVER, "multicast address"),
	V6(0xfe80, 0, 0, 0, 10, FIRM, "link-local address"),
	V6(0xfec0, 0, 0, 0, 10, NAMED, "site-local address"),
	{{{0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x54}, 128}, FIRM,
		"cloud metadata address"},
	{{{0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x54}, 128}, FIRM,
		"cloud metadata address"},
	V6(0xfc00, 0, 0, 0, 7, SOFT, "unique local address"),
	V6(0x0064, 0xff9b, 1, 0, 48, FIRM, "local NAT64 address"),
	V6(0x0100, 0, 0, 0, 64, FIRM, "discard-only address"),
	V6(0x2001, 0, 0, 0, 32, FIRM, "Teredo address"),
	V6(0x2001, 0, 0, 0, 23, FIRM, "reserved address"),
	V6(0x2001, 0x0db8, 0, 0, 32, NAMED, "documentation address"),
	V6(0x3fff, 0, 0, 0, 20, NAMED, "documentation address"),
	V6(0x2002, 0, 0, 0, 16, FIRM, "6to4 address"),
	V4(0, 0, 0, 0, 0, OPEN, NULL),
	V6(0x2000, 0, 0, 0, 3, OPEN, NULL),
	{{{0}, 128}, NEVER, "unspecified address"},
	{{{[15] = 1}, 128}, SOFT, "loopback address"},
	{{{0}, 0}, FIRM, "not a global unicast address"},
};

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b}; /* RFC 6052 section 2.1 */

bool cidr_contains(const struct cidr *range, const uint8_t addr[16])
{
	size_t whole = range->bits / 8;
	unsigned rest = range->bits % 8U;

	if (memcmp(range->addr, addr, whole) != 0)
		return false;
	return rest == 0 || ((range->addr[whole] ^ addr[whole]) >> (8 - rest)) == 0;
}

static bool has_host_bits(const struct cidr *c)
{
	for (unsigned bit = c->bits; bit < 128; bit++)
		if (c->addr[bit / 8] & (0x80U >> (bit % 8)))
			return true;
	return false;
}

int cidr_parse(struct str s, struct cidr *ret)
{
	struct str text = str_prefix(s, str_chr(s, '/'));
	char z[INET6_ADDRSTRLEN];
	struct cidr c = {0};
	uint64_t bits, width;

	if (text.n == 0 || text.n >= sizeof(z) || memchr(text.p, '\0', text.n))
		return -EINVAL;
	str_copy(z, sizeof(z), text);
	if (inet_pton(AF_INET, z, c.addr + 12) == 1) {
		memcpy(c.addr, v4_mapped, sizeof(v4_mapped));
		width = 32;
	} else if (inet_pton(AF_INET6, z, c.addr) == 1) {
		width = 128;
	} else {
		return -EINVAL;
	}
	bits = width;
	if (text.n < s.n && parse_u64(str_from_index(s, text.n + 1), width, &bits) < 0)
		return -EINVAL;
	c.bits = (uint8_t)(128 - width + bits);
	if (has_host_bits(&c))
		return -EINVAL;
	*ret = c;
	return 0;
}

int cidr_from_sockaddr(const struct sockaddr *sa, struct cidr *ret)
{
	struct cidr c = {.bits = 128};

	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		memcpy(c.addr, v4_mapped, sizeof(v4_mapped));
		memcpy(c.addr + 12, &in.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		memcpy(c.addr, &in6.sin6_addr, 16);
	} else {
		return -EAFNOSUPPORT;
	}
	*ret = c;
	return 0;
}

void cidr_format(const struct cidr *c, char ret[CIDR_TEXT_MAX])
{
	bool v4 = c->bits >= 96 && memcmp(c->addr, v4_mapped, sizeof(v4_mapped)) == 0;
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? c->addr + 12 : c->addr, text, sizeof(text));
	(void)snprintf(ret, CIDR_TEXT_MAX, "%s/%u", text, v4 ? c->bits - 96U : c->bits);
}

/* Whether a range of the rule or, for SOFT ones, `allow_private: true` opens addr. */
static bool is_opened(
	const struct address_policy *p, const uint8_t addr[16], enum strength strength)
{
	if (strength == SOFT && p->allow_private)
		return true;
	for (size_t i = 0; i < p->n_allow; i++)
		if (cidr_contains(&p->allow[i], addr))
			return true;
	return false;
}

static bool is_own(const struct address_policy *p, const uint8_t addr[16])
{
	for (size_t i = 0; i < p->n_own; i++)
		if (cidr_contains(&p->own[i], addr))
			return true;
	return false;
}

static const struct special *find_special(const uint8_t addr[16])
{
	const struct special *s = specials;

	while (!cidr_contains(&s->range, addr)) /* the last row has all addresses */
		s++;
	return s;
}

/* Turn an IPv4 address that is translated into the IPv4 address. */
static void unwrap(uint8_t addr[16])
{
	if (memcmp(addr, nat64, sizeof(nat64)) == 0)
		memcpy(addr, v4_mapped, sizeof(v4_mapped));
}

bool address_may_be_advised(const struct sockaddr *sa)
{
	struct cidr c;

	if (cidr_from_sockaddr(sa, &c) < 0)
		return false;
	unwrap(c.addr);
	return find_special(c.addr)->strength < FIRM;
}

const char *address_refusal(const struct sockaddr *sa, const struct address_policy *p)
{
	const struct special *special;
	struct cidr c;

	if (cidr_from_sockaddr(sa, &c) < 0)
		return "not an internet address";
	if (is_own(p, c.addr) && !is_opened(p, c.addr, SOFT))
		return "address of this host";
	unwrap(c.addr);
	special = find_special(c.addr);
	if (special->strength == NEVER ||
		(special->strength != OPEN && !is_opened(p, c.addr, special->strength)))
		return special->what;
	if (is_own(p, c.addr) && !is_opened(p, c.addr, SOFT))
		return "address of this host";
	return NULL;
}
