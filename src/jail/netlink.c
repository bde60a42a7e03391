/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/netlink.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel's macros are of type int. */
#define MSG_HEADER ((size_t)NLMSG_HDRLEN)
#define ATTR_HEADER sizeof(struct nlattr)

/* Return n zeroed, aligned bytes of the buffer, or NULL if they do not fit. */
static uint8_t *take(struct netlink *nl, size_t n)
{
	size_t padded = NLMSG_ALIGN(n);
	uint8_t *p = nl->mem + nl->n;

	if (nl->overflow || padded > sizeof(nl->mem) - nl->n) {
		nl->overflow = true;
		return NULL;
	}
	memset(p, 0, padded);
	nl->n += padded;
	return p;
}

/* The length is what was taken from the buffer, so it is right whatever was added. */
static void set_length(struct netlink *nl)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)(nl->mem + nl->msg);

	if (!nl->overflow)
		h->nlmsg_len = (uint32_t)(nl->n - nl->msg);
}

void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *header, size_t n)
{
	struct nlmsghdr *h;

	nl->msg = nl->n;
	h = (struct nlmsghdr *)(void *)take(nl, MSG_HEADER + n);
	if (!h)
		return;
	h->nlmsg_type = type;
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	h->nlmsg_seq = ++nl->seq;
	memcpy(NLMSG_DATA(h), header, n);
	set_length(nl);
}

void netlink_attr(struct netlink *nl, uint16_t type, const void *p, size_t n)
{
	struct nlattr *a = (struct nlattr *)(void *)take(nl, ATTR_HEADER + n);

	if (!a)
		return;
	a->nla_type = type;
	a->nla_len = (uint16_t)(ATTR_HEADER + n);
	if (n)
		memcpy((uint8_t *)a + ATTR_HEADER, p, n);
	set_length(nl);
}

void netlink_attr_u32(struct netlink *nl, uint16_t type, uint32_t v)
{
	netlink_attr(nl, type, &v, sizeof(v));
}

void netlink_attr_be32(struct netlink *nl, uint16_t type, uint32_t v)
{
	netlink_attr_u32(nl, type, htonl(v));
}

void netlink_attr_z(struct netlink *nl, uint16_t type, const char *z)
{
	netlink_attr(nl, type, z, strlen(z) + 1);
}

size_t netlink_nest(struct netlink *nl, uint16_t type)
{
	size_t mark = nl->n;

	netlink_attr(nl, type | NLA_F_NESTED, NULL, 0);
	return mark;
}

void netlink_nest_end(struct netlink *nl, size_t mark)
{
	struct nlattr *a = (struct nlattr *)(void *)(nl->mem + mark);

	if (!nl->overflow)
		a->nla_len = (uint16_t)(nl->n - mark);
}

/* Read one datagram of answers. Return how many acknowledgements it held, or -errno. */
static int read_answers(int s, uint32_t *ret_seq)
{
	_Alignas(8) uint8_t answer[8192];
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)answer;
	ssize_t got = recv(s, answer, sizeof(answer), 0);
	unsigned left;
	int acks = 0;

	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	for (left = (unsigned)got; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		struct nlmsgerr *e = NLMSG_DATA(h);

		if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
			continue;
		acks++;
		if (e->error == 0)
			continue;
		*ret_seq = h->nlmsg_seq;
		return e->error < 0 ? e->error : -EPROTO;
	}
	return acks;
}

int netlink_run(const struct netlink *nl, int protocol, unsigned acks, uint32_t *ret_seq)
{
	/* The kernel carries out the request within send(). A missing answer would be a fault of
	 * this program, and must not make it hang. */
	const struct timeval patience = {.tv_sec = 10};
	_cleanup_fd_ int s = -1;
	ssize_t sent;

	*ret_seq = 0;
	if (nl->overflow)
		return -E2BIG;
	s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	do
		sent = send(s, nl->mem, nl->n, 0);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	while (acks) {
		int r = read_answers(s, ret_seq);

		if (r < 0)
			return r;
		acks -= MIN(acks, (unsigned)r);
	}
	return 0;
}
