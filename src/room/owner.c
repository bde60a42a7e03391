/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the kernel is asked for the one socket with these two ends, and returns its
 * inode (linux/inet_diag.h; one look into its hash table, whatever else the room has open). Then
 * the descriptors of the room's processes are searched for that inode, from process 1 down, until
 * it is found or the budget is used up. */
#include "room/owner.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "room/proctree.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MAX = 8192, STATUS_MAX = 16384, ANSWER_MAX = 4096 };
/* A tenth of a processor, and some searches at once. */
enum { SHARE = 10, BURST_USEC = 100 * USEC_PER_MSEC };

struct search {
	char link[32]; /* "socket:[INODE]" */
	int budget;
	bool found;
	struct room_owner *owner;
};

/* --- the socket --- */

static bool fill_end(const struct sockaddr *a, __be16 *port, __be32 address[4])
{
	union {
		const struct sockaddr *any;
		const struct sockaddr_in *v4;
		const struct sockaddr_in6 *v6;
	} u = {a};

	if (a->sa_family == AF_INET) {
		*port = u.v4->sin_port;
		memcpy(address, &u.v4->sin_addr, sizeof(u.v4->sin_addr));
	} else if (a->sa_family == AF_INET6) {
		*port = u.v6->sin6_port;
		memcpy(address, &u.v6->sin6_addr, sizeof(u.v6->sin6_addr));
	} else {
		return false;
	}
	return true;
}

static bool ask(int diag, const struct sockaddr *client, const struct sockaddr *server)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} m = {.header = {.nlmsg_len = sizeof(m),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)client->sa_family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0U,
			.id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};

	return client->sa_family == server->sa_family &&
	       fill_end(client, &m.body.id.idiag_sport, m.body.id.idiag_src) &&
	       fill_end(server, &m.body.id.idiag_dport, m.body.id.idiag_dst) &&
	       send(diag, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m);
}

/* The kernel answers before send() returns. */
static uint32_t read_inode(int diag)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	struct nlmsghdr *header = (void *)answer;
	const struct inet_diag_msg *body = NLMSG_DATA(header);
	ssize_t n = recv(diag, answer, sizeof(answer), MSG_DONTWAIT);

	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*body)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	return body->idiag_inode;
}

/* --- the process --- */

static bool holds(int dir, struct search *s)
{
	_cleanup_(fs_list_closep) DIR *fds = fs_list(dir, "fd");
	char link[sizeof(s->link)];
	bool found = false;
	struct dirent *e;

	while (fds && !found && s->budget > 0 && (e = fs_list_next(fds))) {
		ssize_t n = readlinkat(dirfd(fds), e->d_name, link, sizeof(link));

		s->budget--;
		found = n > 0 && (size_t)n == strlen(s->link) &&
			memcmp(link, s->link, (size_t)n) == 0;
	}
	return found;
}

/* Return the innermost number of "NSpid:\t4711\t12". */
static uint32_t pid_inside(int dir, pid_t outside)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(STATUS_MAX);
	uint64_t pid = (uint64_t)outside;
	struct str s, line;
	size_t at;

	if (fd_read_file(dir, "status", &text, NULL) < 0)
		return (uint32_t)pid;
	s = buf_str(&text);
	at = str_find(s, STR("\nNSpid:"));
	s = str_from_index(s, MIN(at + 7, s.n));
	line = str_prefix(s, str_chr(s, '\n'));
	for (size_t i = line.n; i-- > 0;)
		if (line.p[i] == '\t') {
			(void)!parse_u64(str_from_index(line, i + 1), UINT32_MAX, &pid);
			break;
		}
	return (uint32_t)pid;
}

static void describe(int dir, pid_t pid, struct room_owner *o)
{
	_cleanup_(buf_donep) struct buf name = BUF_INIT(64);
	ssize_t n = readlinkat(dir, "exe", o->program, sizeof(o->program) - 1);
	struct str s;

	o->program[MAX(n, 0)] = '\0';
	o->pid = pid_inside(dir, pid);
	if (fd_read_file(dir, "comm", &name, NULL) < 0)
		return;
	s = buf_str(&name);
	if (str_ends(s, STR("\n")))
		s.n--;
	s = str_prefix(s, sizeof(o->name) - 1);
	memcpy(o->name, s.p, s.n);
}

static bool look(void *user, pid_t pid, int dir)
{
	struct search *s = user;

	if (!holds(dir, s))
		return s->budget > 0;
	s->found = true;
	describe(dir, pid, s->owner);
	return false;
}

/* --- how long it may take --- */

bool owner_budget_allows(struct owner_budget *b, uint64_t now)
{
	uint64_t more = (now - b->at) / SHARE;

	b->left += (int64_t)MIN(more, (uint64_t)INT32_MAX);
	b->left = MIN(b->left, (int64_t)BURST_USEC);
	b->at = now;
	return b->left > 0;
}

void owner_budget_spend(struct owner_budget *b, uint64_t usec)
{
	b->left -= (int64_t)MIN(usec, (uint64_t)INT32_MAX);
}

bool connection_owner(int diag, pid_t root, const struct sockaddr *client,
	const struct sockaddr *server, struct owner_budget *budget, struct room_owner *ret)
{
	struct search s = {.budget = LINKS_MAX, .owner = ret};
	uint64_t begin = clock_mono_usec();
	uint32_t inode;

	*ret = (struct room_owner){0};
	if (!owner_budget_allows(budget, begin))
		return false;
	inode = ask(diag, client, server) ? read_inode(diag) : 0;
	if (inode > 0) {
		snprintf(s.link, sizeof(s.link), "socket:[%u]", inode);
		proctree_each(root, look, &s);
	}
	owner_budget_spend(budget, clock_mono_usec() - begin);
	return s.found;
}
