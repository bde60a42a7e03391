/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * nf_tables takes a batch of messages between "begin" and "end" and applies all of it or nothing. A
 * rule is a list of expressions that load, compare and act through registers. The messages use the
 * names of the kernel's header (linux/netfilter/nf_tables.h); numbers are big-endian. */
#include "jail/nftables.h"
#include "jail/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#define TABLE "cloche"
#define CHAIN "capture"
#define PRIORITY_MANGLE (-150)
#define IP_DADDR 16  /* offset of the destination in the header, RFC 791 section 3.1 */
#define IP6_DADDR 24 /* RFC 8200 section 3 */

static void begin(struct netlink *nl, uint16_t type, uint16_t flags)
{
	const struct nfgenmsg g = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

	netlink_begin(
		nl, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags | NLM_F_ACK, &g, sizeof(g));
}

static void batch(struct netlink *nl, uint16_t type)
{
	const struct nfgenmsg g = {.nfgen_family = AF_UNSPEC,
		.version = NFNETLINK_V0,
		.res_id = htons(NFNL_SUBSYS_NFTABLES)};

	netlink_begin(nl, type, 0, &g, sizeof(g));
}

/* NFTA_LIST_ELEM { NAME, DATA { ... } }: begun here, ended by expr_end. */
struct expr {
	size_t elem, data;
};

static struct expr expr(struct netlink *nl, const char *name)
{
	struct expr e;

	e.elem = netlink_nest(nl, NFTA_LIST_ELEM);
	netlink_attr_z(nl, NFTA_EXPR_NAME, name);
	e.data = netlink_nest(nl, NFTA_EXPR_DATA);
	return e;
}

static void expr_end(struct netlink *nl, struct expr e)
{
	netlink_nest_end(nl, e.data);
	netlink_nest_end(nl, e.elem);
}

static void value(struct netlink *nl, uint16_t type, const void *p, size_t n)
{
	size_t nest = netlink_nest(nl, type);

	netlink_attr(nl, NFTA_DATA_VALUE, p, n);
	netlink_nest_end(nl, nest);
}

static void compare(struct netlink *nl, const void *p, size_t n)
{
	struct expr e = expr(nl, "cmp");

	netlink_attr_be32(nl, NFTA_CMP_SREG, NFT_REG_1);
	netlink_attr_be32(nl, NFTA_CMP_OP, NFT_CMP_EQ);
	value(nl, NFTA_CMP_DATA, p, n);
	expr_end(nl, e);
}

static void match_meta(struct netlink *nl, uint32_t key, uint8_t want)
{
	struct expr e = expr(nl, "meta");

	netlink_attr_be32(nl, NFTA_META_KEY, key);
	netlink_attr_be32(nl, NFTA_META_DREG, NFT_REG_1);
	expr_end(nl, e);
	compare(nl, &want, sizeof(want));
}

static void mask(struct netlink *nl, const uint8_t *p, uint32_t n)
{
	static const uint8_t zero[16];
	struct expr e = expr(nl, "bitwise");

	netlink_attr_be32(nl, NFTA_BITWISE_SREG, NFT_REG_1);
	netlink_attr_be32(nl, NFTA_BITWISE_DREG, NFT_REG_1);
	netlink_attr_be32(nl, NFTA_BITWISE_LEN, n);
	value(nl, NFTA_BITWISE_MASK, p, n);
	value(nl, NFTA_BITWISE_XOR, zero, n);
	expr_end(nl, e);
}

static void match_daddr(struct netlink *nl, bool v6, const uint8_t *netmask, const uint8_t *want)
{
	uint32_t n = v6 ? 16 : 4;
	struct expr e;

	match_meta(nl, NFT_META_NFPROTO, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	e = expr(nl, "payload");
	netlink_attr_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
	netlink_attr_be32(nl, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	netlink_attr_be32(nl, NFTA_PAYLOAD_OFFSET, v6 ? IP6_DADDR : IP_DADDR);
	netlink_attr_be32(nl, NFTA_PAYLOAD_LEN, n);
	expr_end(nl, e);
	if (netmask)
		mask(nl, netmask, n);
	compare(nl, want, n);
}

static void load(struct netlink *nl, uint32_t reg, const void *p, size_t n)
{
	struct expr e = expr(nl, "immediate");

	netlink_attr_be32(nl, NFTA_IMMEDIATE_DREG, reg);
	value(nl, NFTA_IMMEDIATE_DATA, p, n);
	expr_end(nl, e);
}

static void accept_packet(struct netlink *nl)
{
	struct expr e = expr(nl, "immediate");
	size_t data, verdict;

	netlink_attr_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = netlink_nest(nl, NFTA_IMMEDIATE_DATA);
	verdict = netlink_nest(nl, NFTA_DATA_VERDICT);
	netlink_attr_be32(nl, NFTA_VERDICT_CODE, NF_ACCEPT);
	netlink_nest_end(nl, verdict);
	netlink_nest_end(nl, data);
	expr_end(nl, e);
}

static void tproxy(struct netlink *nl, bool v6, uint16_t port)
{
	const struct in6_addr to6 = IN6ADDR_LOOPBACK_INIT;
	const uint32_t to4 = htonl(INADDR_LOOPBACK);
	const uint16_t be_port = htons(port);
	struct expr e;

	match_meta(nl, NFT_META_NFPROTO, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	match_meta(nl, NFT_META_L4PROTO, IPPROTO_TCP);
	load(nl, NFT_REG_1, v6 ? (const void *)&to6 : &to4, v6 ? sizeof(to6) : sizeof(to4));
	load(nl, NFT_REG_2, &be_port, sizeof(be_port));
	e = expr(nl, "tproxy");
	netlink_attr_be32(nl, NFTA_TPROXY_FAMILY, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	netlink_attr_be32(nl, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
	netlink_attr_be32(nl, NFTA_TPROXY_REG_PORT, NFT_REG_2);
	expr_end(nl, e);
}

/* A rule is begun, filled with matches, and ended with "accept". */
static size_t rule(struct netlink *nl)
{
	begin(nl, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	netlink_attr_z(nl, NFTA_RULE_TABLE, TABLE);
	netlink_attr_z(nl, NFTA_RULE_CHAIN, CHAIN);
	return netlink_nest(nl, NFTA_RULE_EXPRESSIONS);
}

static void rule_end(struct netlink *nl, size_t mark)
{
	accept_packet(nl);
	netlink_nest_end(nl, mark);
}

static void add_chain(struct netlink *nl)
{
	size_t hook;

	begin(nl, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	netlink_attr_z(nl, NFTA_TABLE_NAME, TABLE);
	begin(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	netlink_attr_z(nl, NFTA_CHAIN_TABLE, TABLE);
	netlink_attr_z(nl, NFTA_CHAIN_NAME, CHAIN);
	hook = netlink_nest(nl, NFTA_CHAIN_HOOK);
	netlink_attr_be32(nl, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	netlink_attr_be32(nl, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY_MANGLE);
	netlink_nest_end(nl, hook);
	netlink_attr_be32(nl, NFTA_CHAIN_POLICY, NF_ACCEPT);
	netlink_attr_z(nl, NFTA_CHAIN_TYPE, "filter");
}

int nftables_capture(const uint8_t own[4], uint16_t port, struct cloche_err *err)
{
	static const uint8_t loopback[4] = {127, 0, 0, 0}, loopback_mask[4] = {255, 0, 0, 0};
	static const struct in6_addr loopback6 = IN6ADDR_LOOPBACK_INIT;
	enum { MESSAGES = 7 }; /* table, chain, five rules */
	struct netlink nl = {0};
	uint32_t seq;
	size_t mark;
	int r;

	batch(&nl, NFNL_MSG_BATCH_BEGIN);
	add_chain(&nl);
	mark = rule(&nl);
	match_daddr(&nl, false, loopback_mask, loopback);
	rule_end(&nl, mark);
	mark = rule(&nl);
	match_daddr(&nl, false, NULL, own);
	rule_end(&nl, mark);
	mark = rule(&nl);
	match_daddr(&nl, true, NULL, loopback6.s6_addr);
	rule_end(&nl, mark);
	mark = rule(&nl);
	tproxy(&nl, false, port);
	rule_end(&nl, mark);
	mark = rule(&nl);
	tproxy(&nl, true, port);
	rule_end(&nl, mark);
	batch(&nl, NFNL_MSG_BATCH_END);
	r = netlink_run(&nl, NETLINK_NETFILTER, MESSAGES, &seq);
	if (r == 0)
		return 0;
	err_sys(err, -r, "capture the room's connections (nf_tables, step %u)", seq);
	if (r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -ENOENT)
		err_hint(err, "the kernel needs nf_tables with tproxy: modprobe -a nf_tables "
			      "nft_tproxy");
	return err ? -err->code : -E_SYSTEM;
}
