/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/synthetic.h"
#include "base/hash.h"
#include "dns/message.h"
#include "dns/names.h"

#include <errno.h>
#include <utlist.h>

/* Theory of operation: each name has a number from 1 to INDEX_MAX, which is the low part of both of
 * its addresses. Two hash tables find an entry by name and by number, a list keeps the order of
 * use. Numbers are given out in a circle that is twice as long as the largest map. So the number of
 * a dropped name rests for as many new names as that map holds before it is used again: a program
 * that still has the address of a dropped name reaches nothing rather than another host. */

#define V4_BASE 0xc6120000U /* 198.18.0.0 */
#define V4_MASK 0xfffe0000U /* /15 */
#define INDEX_MAX 131070U   /* without the first and the last address */

static const uint8_t v6_prefix[12] = {0xfd, 0x00, 0xc1, 0x0c};

struct entry {
	UT_hash_handle by_name, by_index;
	struct entry *prev, *next; /* least recently used first */
	uint32_t index;
	uint16_t name_len;
	char name[];
};

struct dns_synthetic {
	struct entry *by_name, *by_index, *order;
	unsigned max, count;
	uint32_t last; /* number given out last */
};

struct dns_synthetic *dns_synthetic_new(unsigned max)
{
	struct dns_synthetic *m = calloc(1, sizeof(*m));

	if (m)
		m->max = MIN(MAX(max, 1U), (unsigned)DNS_SYNTHETIC_NAMES);
	return m;
}

static void synthetic_forget(struct dns_synthetic *m, struct entry *e)
{
	HASH_DELETE(by_name, m->by_name, e);
	HASH_DELETE(by_index, m->by_index, e);
	DL_DELETE(m->order, e);
	m->count--;
	free(e);
}

void dns_synthetic_free(struct dns_synthetic *m)
{
	if (!m)
		return;
	while (m->order)
		synthetic_forget(m, m->order);
	free(m);
}

static struct entry *find_index(const struct dns_synthetic *m, uint32_t index)
{
	struct entry *e;

	HASH_FIND(by_index, m->by_index, &index, sizeof(index), e);
	return e;
}

static void touch(struct dns_synthetic *m, struct entry *e)
{
	if (!e->next)
		return;
	DL_DELETE(m->order, e);
	DL_APPEND(m->order, e);
}

/* At most half of the numbers are in use, so over a full circle each new name skips one on
 * average. */
static uint32_t next_index(struct dns_synthetic *m)
{
	do
		m->last = m->last % INDEX_MAX + 1;
	while (find_index(m, m->last));
	return m->last;
}

static struct entry *add(struct dns_synthetic *m, struct str name)
{
	struct entry *e = calloc(1, sizeof(*e) + name.n + 1);

	if (!e)
		return NULL;
	if (m->count >= m->max)
		synthetic_forget(m, m->order);
	memcpy(e->name, name.p, name.n);
	e->name_len = (uint16_t)name.n;
	e->index = next_index(m);
	HASH_ADD_KEYPTR(by_name, m->by_name, e->name, e->name_len, e);
	if (!e->by_name.tbl)
		goto no_memory;
	HASH_ADD(by_index, m->by_index, index, sizeof(e->index), e);
	if (!e->by_index.tbl) {
		HASH_DELETE(by_name, m->by_name, e);
		goto no_memory;
	}
	DL_APPEND(m->order, e);
	m->count++;
	return e;
no_memory:
	free(e);
	return NULL;
}

int dns_synthetic_get(
	struct dns_synthetic *m, struct str name, struct in_addr *ret4, struct in6_addr *ret6)
{
	char lower[DNS_NAME_MAX + 1];
	struct entry *e;
	uint32_t low;
	int r = dns_name_canonical(name, lower, &name);

	if (r < 0)
		return r;
	HASH_FIND(by_name, m->by_name, name.p, name.n, e);
	if (e)
		touch(m, e);
	else
		e = add(m, name);
	if (!e)
		return -ENOMEM;
	if (ret4)
		ret4->s_addr = htonl(V4_BASE + e->index);
	if (ret6) {
		low = htonl(e->index);
		memcpy(ret6->s6_addr, v6_prefix, sizeof(v6_prefix));
		memcpy(ret6->s6_addr + sizeof(v6_prefix), &low, sizeof(low));
	}
	return 0;
}

/* Get the number in a synthetic address; it may be one that no name has, such as 0. Return false
 * for any other address. */
static bool index_of(const struct sockaddr *addr, uint32_t *ret)
{
	const struct in6_addr *v6;
	uint32_t word;

	if (addr->sa_family == AF_INET) {
		word = ntohl(((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr);
	} else if (addr->sa_family == AF_INET6) {
		v6 = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
		memcpy(&word, v6->s6_addr + sizeof(v6_prefix), sizeof(word));
		word = ntohl(word);
		if (memcmp(v6->s6_addr, v6_prefix, sizeof(v6_prefix)) == 0) {
			*ret = word;
			return true;
		}
		if (!IN6_IS_ADDR_V4MAPPED(v6))
			return false;
	} else {
		return false;
	}
	if ((word & V4_MASK) != V4_BASE)
		return false;
	*ret = word & ~V4_MASK;
	return true;
}

struct str dns_synthetic_name(struct dns_synthetic *m, const struct sockaddr *addr)
{
	struct entry *e;
	uint32_t index;

	if (!index_of(addr, &index))
		return STR_NULL;
	e = find_index(m, index);
	if (!e)
		return STR_NULL;
	touch(m, e);
	return str_make(e->name, e->name_len);
}

unsigned dns_synthetic_count(const struct dns_synthetic *m)
{
	return m->count;
}
