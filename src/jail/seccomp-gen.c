/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-SYSCALLS, INV-NARROW)
 *
 * Runs at build time: compiles the rules with libseccomp and prints the programs as C arrays, so
 * that starting a room costs one system call and no library. A room's filter is two or three
 * filters joined into one (seccomp-join.h). The allowlist says which calls exist. Its default is
 * ENOSYS, so its rules about arguments can only allow. A second filter, whose default is to allow,
 * refuses calls by their arguments, with a more fitting errno.
 *
 * Arguments that the kernel reads as 32 bits are compared under a 32-bit mask if a match refuses
 * (else a call with higher bits set would not be refused), and as a whole if a match allows (else
 * it would be allowed). */
#include "base/macro.h"
#include "jail/seccomp-join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOW32 0xffffffffULL
#define NS_FLAGS                                                                                   \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
		CLONE_NEWPID | CLONE_NEWNET)
#define SELF_PLACEHOLDER 0x5e1f5e1fU /* no process has this number */
#define NEWTIME 0x80                 /* in clone(), this bit is part of the exit signal */

void seccomp_fail(const char *what, const char *name, int r)
{
	fprintf(stderr, "seccomp-gen: %s %s: %s\n", what, name, strerror(r < 0 ? -r : r));
	exit(1);
}

/* Return the call's number on this architecture, or -1 if it has no such call. nr: its number if
 * the library does not know the call, or -1. */
static int number(const char *name, int nr)
{
	int known = seccomp_syscall_resolve_name(name);

	if (known >= 0)
		return known;
	/* Numbers below __NR_SCMP_ERROR stand for calls that only other architectures have. */
	return known == __NR_SCMP_ERROR ? nr : -1;
}

static void rule_array(scmp_filter_ctx ctx, uint32_t action, const char *name, int nr, unsigned n,
	const struct scmp_arg_cmp *c)
{
	int r, call = number(name, nr);

	if (call < 0)
		return;
	r = seccomp_rule_add_array(ctx, action, call, n, c);
	if (r < 0)
		seccomp_fail("rule for", name, r);
}

/* --- what an argument of a call is compared with --- */

static struct scmp_arg_cmp arg_is(unsigned arg, uint64_t value)
{
	return SCMP_CMP64(arg, SCMP_CMP_EQ, value, 0);
}

static struct scmp_arg_cmp arg_is_not(unsigned arg, uint64_t value)
{
	return SCMP_CMP64(arg, SCMP_CMP_NE, value, 0);
}

static struct scmp_arg_cmp arg_is_above(unsigned arg, uint64_t value)
{
	return SCMP_CMP64(arg, SCMP_CMP_GT, value, 0);
}

static struct scmp_arg_cmp arg_is_masked(unsigned arg, uint64_t mask, uint64_t value)
{
	return SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value);
}

static void rule_any(scmp_filter_ctx ctx, uint32_t action, const char *name)
{
	rule_array(ctx, action, name, -1, 0, NULL);
}

static void rule_if(scmp_filter_ctx ctx, uint32_t action, const char *name, struct scmp_arg_cmp c)
{
	rule_array(ctx, action, name, -1, 1, &c);
}

static void rule_if_both(scmp_filter_ctx ctx, uint32_t action, const char *name,
	struct scmp_arg_cmp a, struct scmp_arg_cmp b)
{
	rule_array(ctx, action, name, -1, 2, (const struct scmp_arg_cmp[]){a, b});
}

static scmp_filter_ctx start(uint32_t action)
{
	scmp_filter_ctx ctx = seccomp_init(action);
	int r;

	if (!ctx)
		seccomp_fail("seccomp_init", "", ENOMEM);
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A binary tree: a few comparisons for each call instead of hundreds. */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r < 0)
		seccomp_fail("seccomp_attr_set", "", r);
	return ctx;
}

/* Takes ctx. */
static void compile(scmp_filter_ctx ctx, struct filter *ret)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : seccomp_export_bpf(ctx, fd);
	ssize_t n = r < 0 ? -1 : pread(fd, ret->code, sizeof(ret->code), 0);

	if (n <= 0)
		seccomp_fail("export", "a filter", r ? r : errno);
	ret->n = (unsigned)((size_t)n / sizeof(ret->code[0]));
	close(fd);
	seccomp_release(ctx);
}

/* Nested namespaces never include a cgroup namespace: in one of its own, a process inside could
 * mount the cgroup files and, if the room's group belongs to the user, lift its limits. */
static void allow_clone(scmp_filter_ctx ctx, bool nested)
{
	const uint64_t flags = nested ? CLONE_NEWCGROUP : NS_FLAGS;

	rule_if(ctx, SCMP_ACT_ALLOW, "clone", arg_is_masked(0, flags, 0));
	rule_if(ctx, SCMP_ACT_ALLOW, "unshare", arg_is_masked(0, flags | NEWTIME, 0));
}

/* Allow the families that stay inside the room's network namespace; of the internet families, only
 * the protocols that tools use, since a socket of any other would load its module into the host's
 * kernel. Allow netlink only for the routing tables, which getifaddrs() reads. */
static void allow_socket(scmp_filter_ctx ctx)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};
	static const uint64_t protocols[] = {
		0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6};

	rule_if(ctx, SCMP_ACT_ALLOW, "socket", arg_is(0, AF_UNIX));
	rule_if(ctx, SCMP_ACT_ALLOW, "socketpair", arg_is(0, AF_UNIX));
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		for (size_t k = 0; k < ARRAY_SIZE(protocols); k++)
			rule_if_both(ctx, SCMP_ACT_ALLOW, "socket", arg_is(0, families[i]),
				arg_is(2, protocols[k]));
	rule_if_both(
		ctx, SCMP_ACT_ALLOW, "socket", arg_is(0, AF_NETLINK), arg_is(2, NETLINK_ROUTE));
}

/* Allow reading the personality, and setting the plain one, with or without address space
 * randomization, which debuggers switch off. */
static void allow_personality(scmp_filter_ctx ctx)
{
	static const uint64_t values[] = {0, 0x0040000, LOW32, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		rule_if(ctx, SCMP_ACT_ALLOW, "personality", arg_is(0, values[i]));
}

static void compile_allowlist(bool nested, struct filter *ret)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(ENOSYS));
	const uint32_t if_nested = nested ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM);

#define ALLOW(name) rule_any(ctx, SCMP_ACT_ALLOW, #name);
#define ALLOW_NR(name, nr) rule_array(ctx, SCMP_ACT_ALLOW, #name, nr, 0, NULL);
#define DENY(name) rule_any(ctx, SCMP_ACT_ERRNO(EPERM), #name);
#define NESTED(name) rule_any(ctx, if_nested, #name);
#include "jail/seccomp-rules.def"
#undef ALLOW
#undef ALLOW_NR
#undef DENY
#undef NESTED
	allow_clone(ctx, nested);
	allow_socket(ctx);
	allow_personality(ctx);
	compile(ctx, ret);
}

/* Refuse the sockets that the allowlist does not allow, with the errors of a kernel that does not
 * have them. Socket types from 6 on are DCCP and an old way to ask for packet sockets. */
static void refuse_sockets(scmp_filter_ctx ctx)
{
	const uint32_t no_family = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	const uint32_t no_protocol = SCMP_ACT_ERRNO(EPROTONOSUPPORT);
	const uint32_t no_type = SCMP_ACT_ERRNO(ESOCKTNOSUPPORT);

	for (uint64_t low = AF_UNSPEC; low < AF_NETLINK; low++)
		if (low != AF_UNIX && low != AF_INET && low != AF_INET6)
			rule_if(ctx, no_family, "socket", arg_is(0, low));
	rule_if(ctx, no_family, "socket", arg_is_above(0, AF_NETLINK));
	rule_if(ctx, no_family, "socketpair", arg_is_not(0, AF_UNIX));
	rule_if_both(
		ctx, no_protocol, "socket", arg_is(0, AF_NETLINK), arg_is_above(2, NETLINK_ROUTE));
	rule_if(ctx, no_type, "socket", arg_is_masked(1, 8, 8));
	rule_if(ctx, no_type, "socket", arg_is_masked(1, 15, SOCK_DCCP));
	rule_if_both(
		ctx, no_protocol, "socket", arg_is(0, AF_INET), arg_is_above(2, IPPROTO_ICMPV6));
	rule_if_both(
		ctx, no_protocol, "socket", arg_is(0, AF_INET6), arg_is_above(2, IPPROTO_ICMPV6));
}

/* A crash must not reach the host's core handler, which runs as root outside: the kernel skips the
 * handler only if the limit is 1. That limit is already set (as the hard limit, so it cannot be
 * raised). An attempt to lower it succeeds but changes nothing. */
static void keep_core_limit(scmp_filter_ctx ctx)
{
	rule_if(ctx, SCMP_ACT_ERRNO(0), "setrlimit", arg_is_masked(0, LOW32, RLIMIT_CORE));
	rule_if_both(ctx, SCMP_ACT_ERRNO(0), "prlimit64", arg_is_masked(1, LOW32, RLIMIT_CORE),
		arg_is_not(2, 0));
}

static const char *const scheduling[] = {
	"sched_setscheduler", "sched_setparam", "sched_setaffinity", "sched_setattr"};

/* Process 1 belongs to the user that the room's processes run as, so the kernel would let them
 * change its limits and its scheduling. Refuse that with EPERM, as the kernel does for another
 * user's process. */
static void keep_init(scmp_filter_ctx ctx)
{
	static const struct {
		const char *name;
		uint64_t which[2]; /* a process, a group of processes */
	} others[] = {{"setpriority", {PRIO_PROCESS, PRIO_PGRP}}, {"ioprio_set", {1, 2}}};

	rule_if_both(ctx, SCMP_ACT_ERRNO(EPERM), "prlimit64", arg_is_masked(0, LOW32, 1),
		arg_is_not(2, 0));
	for (size_t i = 0; i < ARRAY_SIZE(scheduling); i++)
		rule_if(ctx, SCMP_ACT_ERRNO(EPERM), scheduling[i], arg_is_masked(0, LOW32, 1));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t k = 0; k < 2; k++)
			rule_if_both(ctx, SCMP_ACT_ERRNO(EPERM), others[i].name,
				arg_is_masked(0, LOW32, others[i].which[k]),
				arg_is_masked(1, LOW32, 1));
}

/* Return the errors that programs expect where the allowlist alone would say ENOSYS. Refuse
 * terminal requests that fake input for the reader of the terminal or load line disciplines
 * (modems, serial buses) into the kernel, and requests by which older kernels show a whole btrfs
 * subvolume to the owner of one file in it. */
static void compile_arguments(bool nested, struct filter *ret)
{
	static const uint64_t requests[] = {0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */,
		0x5423 /* TIOCSETD */, 0x50009401 /* BTRFS_IOC_SNAP_CREATE */,
		0x50009417 /* ..._V2 */};
	static const uint64_t flags[] = {CLONE_NEWCGROUP, CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};
	const size_t flags_n = nested ? 1 : ARRAY_SIZE(flags);
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		rule_if(ctx, refuse, "ioctl", arg_is_masked(1, LOW32, requests[i]));
	for (size_t i = 0; i < flags_n; i++) {
		rule_if(ctx, refuse, "clone", arg_is_masked(0, flags[i], flags[i]));
		rule_if(ctx, refuse, "unshare", arg_is_masked(0, flags[i], flags[i]));
	}
	rule_if(ctx, refuse, "unshare", arg_is_masked(0, NEWTIME, NEWTIME));
	refuse_sockets(ctx);
	keep_core_limit(ctx);
	keep_init(ctx);
	compile(ctx, ret);
}

/* The calls that change the mode of what is there; `arg` is the mode. */
static const struct mode_call {
	const char *name;
	int nr;
	unsigned arg;
} chmods[] = {{"chmod", -1, 1}, {"fchmod", -1, 1}, {"fchmodat", -1, 2}, {"fchmodat2", 452, 2}};

static void rule_mode(
	scmp_filter_ctx ctx, uint32_t action, const struct mode_call *call, uint64_t bit)
{
	const struct scmp_arg_cmp c = arg_is_masked(call->arg, bit, bit);

	rule_array(ctx, action, call->name, call->nr, 1, &c);
}

/* Refuse every way to give a file a set-uid or set-gid bit. This includes message queues, which are
 * files: an overlay copies their mode to wherever its upper layer lies. mkdir() and shmget() do not
 * take such bits, nor do the options of the file systems that can be mounted inside. A second
 * filter (print_setgid) decides on the set-gid bit of what is there, except in a nested room,
 * whose processes may have a file system of their own. */
static void refuse_setid(scmp_filter_ctx ctx, bool nested)
{
	static const struct mode_call creating[] = {
		{"creat", -1, 1}, {"mknod", -1, 1}, {"mknodat", -1, 2}};
	static const struct {
		const char *name;
		unsigned flags, mode;
	} opens[] = {{"open", 1, 2}, {"openat", 2, 3}, {"mq_open", 1, 2}};
	static const uint64_t bits[] = {S_ISUID, S_ISGID};
	static const uint64_t flags[] = {0100 /* O_CREAT */, 020000000 /* O_TMPFILE's own */};
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);

	for (size_t b = 0; b < ARRAY_SIZE(bits); b++) {
		for (size_t i = 0; i < ARRAY_SIZE(chmods); i++)
			if (nested || bits[b] == S_ISUID)
				rule_mode(ctx, refuse, &chmods[i], bits[b]);
		for (size_t i = 0; i < ARRAY_SIZE(creating); i++)
			rule_mode(ctx, refuse, &creating[i], bits[b]);
		for (size_t i = 0; i < ARRAY_SIZE(opens); i++)
			for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
				rule_if_both(ctx, refuse, opens[i].name,
					arg_is_masked(opens[i].flags, flags[k], flags[k]),
					arg_is_masked(opens[i].mode, bits[b], bits[b]));
	}
	rule_any(ctx, SCMP_ACT_ERRNO(ENOSYS), "openat2");
}

/* Making the character device 0:0, by which overlayfs marks what was deleted, needs no capability.
 * A process that can mount overlays needs it, and could also make it through them. */
static void refuse_devices(scmp_filter_ctx ctx)
{
	static const uint64_t types[] = {S_IFCHR, S_IFBLK};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		rule_if(ctx, SCMP_ACT_ERRNO(EPERM), "mknod", arg_is_masked(1, S_IFMT, types[i]));
		rule_if(ctx, SCMP_ACT_ERRNO(EPERM), "mknodat", arg_is_masked(2, S_IFMT, types[i]));
	}
	/* Behave as a file system that does not know this flag. */
	rule_if(ctx, SCMP_ACT_ERRNO(EINVAL), "renameat2", arg_is_masked(4, 4, 4));
}

/* Behave as a file system without extended attributes, which every tool copes with. */
static void refuse_xattr(scmp_filter_ctx ctx)
{
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "setxattr");
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "lsetxattr");
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "fsetxattr");
}

static void compile_staying(bool nested, struct filter *ret)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	refuse_setid(ctx, nested);
	if (nested)
		refuse_xattr(ctx);
	else
		refuse_devices(ctx);
	compile(ctx, ret);
}

/* Stop every call that would give what is there a set-gid bit. */
static void print_setgid(const char *name, uint32_t action)
{
	static struct filter filter;
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < ARRAY_SIZE(chmods); i++)
		rule_mode(ctx, action, &chmods[i], S_ISGID);
	compile(ctx, &filter);
	seccomp_print(name, &filter);
}

/* A process that had a socket of the internet families, or one of AF_UNIX for datagrams, could send
 * to an address that is in its memory, where no filter looks. So none ever has one: a request for
 * the former waits for its answer, which is another socket (init/dial.c), and the latter is
 * refused. All others send only where they are connected to, and connect() waits for its answer
 * too. Options of protocols that such a socket does not have are taken, and change nothing. */
static void ask_for_sockets(scmp_filter_ctx ctx)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};
	static const uint64_t levels[] = {IPPROTO_IP, IPPROTO_TCP, IPPROTO_IPV6};
	static const uint64_t types[] = {SOCK_DGRAM, SOCK_RAW};
	static const char *const calls[] = {"connect", "bind", "getsockname", "getpeername"};
	const struct scmp_arg_cmp local = arg_is_masked(0, LOW32, AF_UNIX);

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		rule_if(ctx, SCMP_ACT_NOTIFY, "socket", arg_is_masked(0, LOW32, families[i]));
	rule_if(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", arg_is_masked(0, LOW32, AF_NETLINK));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct scmp_arg_cmp type = arg_is_masked(1, 15, types[i]);

		rule_if_both(ctx, SCMP_ACT_ERRNO(ESOCKTNOSUPPORT), "socket", local, type);
		rule_if_both(ctx, SCMP_ACT_ERRNO(ESOCKTNOSUPPORT), "socketpair", local, type);
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		rule_any(ctx, SCMP_ACT_NOTIFY, calls[i]);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		rule_if(ctx, SCMP_ACT_ERRNO(0), "setsockopt", arg_is_masked(1, LOW32, levels[i]));
}

/* Refuse to change limits and priorities of other processes, as all of the user's are in reach. */
static void keep_others(scmp_filter_ctx ctx)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);

	rule_if_both(ctx, refuse, "prlimit64", arg_is_not(0, 0), arg_is_not(2, 0));
	for (size_t i = 0; i < ARRAY_SIZE(scheduling); i++)
		rule_if(ctx, refuse, scheduling[i], arg_is_not(0, 0));
	rule_if(ctx, refuse, "setpriority", arg_is_not(1, 0));
	rule_if(ctx, refuse, "setpriority", arg_is_masked(0, LOW32, PRIO_USER));
	rule_if(ctx, refuse, "ioprio_set", arg_is_not(1, 0));
	rule_if(ctx, refuse, "ioprio_set", arg_is_masked(0, LOW32, 3 /* a user */));
}

/* Have whoever listens change the modes of files, and behave as a file system without extended
 * attributes: Landlock guards neither, and lists of access rights are among the latter. */
static void ask_for_modes(scmp_filter_ctx ctx)
{
	refuse_xattr(ctx);
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "removexattr");
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "lremovexattr");
	rule_any(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "fremovexattr");
	for (size_t i = 0; i < ARRAY_SIZE(chmods); i++)
		rule_array(ctx, SCMP_ACT_NOTIFY, chmods[i].name, chmods[i].nr, 0, NULL);
}

/* Objects of System V and POSIX are the machine's: behave as a kernel without them. */
static void refuse_shared_objects(scmp_filter_ctx ctx)
{
	static const char *const calls[] = {"shmget", "shmat", "shmctl", "semget", "semop",
		"semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open",
		"mq_unlink"};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		rule_any(ctx, SCMP_ACT_ERRNO(ENOSYS), calls[i]);
}

/* For a room whose only walls are Landlock and filters: what Landlock does not guard. */
static void print_dialling(const char *name)
{
	static struct filter filter;
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	ask_for_sockets(ctx);
	ask_for_modes(ctx);
	keep_others(ctx);
	refuse_shared_objects(ctx);
	compile(ctx, &filter);
	seccomp_print(name, &filter);
}

/* If two filters refuse with an errno, the first one's is used. */
static void print_room(const char *name, bool nested, bool staying)
{
	static struct filter arguments, allowlist, stays, joined;
	const struct filter *const filters[] = {
		&arguments, &allowlist, staying ? &stays : NULL, NULL};

	compile_arguments(nested, &arguments);
	compile_allowlist(nested, &allowlist);
	compile_staying(nested, &stays);
	seccomp_join(filters, &joined);
	seccomp_print(name, &joined);
}

/* The columns of seccomp-programs.def. */
enum program { GATEWAY, BROKER, FORWARD, UNPACK, SYNC, RELAY, SSH_ROOM, SSH_ORIGIN };
static const char *const programs[] = {"filter_gateway", "filter_broker", "filter_forward",
	"filter_unpack", "filter_sync", "filter_relay", "filter_ssh_room", "filter_ssh_origin"};

/* Compare an argument that the kernel takes as 32 bits, ignoring the bits in `but`. */
static struct scmp_arg_cmp equal(unsigned arg, uint32_t but, uint32_t value)
{
	return arg_is_masked(arg, LOW32 & ~(uint64_t)but, value);
}

static void allow(scmp_filter_ctx ctx, const char *name)
{
	rule_any(ctx, SCMP_ACT_ALLOW, name);
}

/* Refusing is the filter's default. */
static void refuse(scmp_filter_ctx ctx, const char *name)
{
	(void)ctx;
	(void)name;
}

static void end_program(scmp_filter_ctx ctx, const char *name)
{
	rule_any(ctx, SCMP_ACT_KILL_PROCESS, name);
}

static void allow_data(scmp_filter_ctx ctx, const char *name)
{
	rule_if(ctx, SCMP_ACT_ALLOW, name, arg_is_masked(2, PROT_EXEC, 0));
}

static void allow_flags(scmp_filter_ctx ctx, const char *name)
{
	static const uint32_t commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		rule_if(ctx, SCMP_ACT_ALLOW, name, equal(1, 0, commands[i]));
}

/* Other families, types and protocols reach more of the kernel, and some load modules. */
static void allow_inet(scmp_filter_ctx ctx, const char *name)
{
	static const uint32_t families[] = {AF_INET, AF_INET6};
	static const uint32_t types[] = {SOCK_STREAM, SOCK_DGRAM};
	static const uint32_t protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP};

	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
				const struct scmp_arg_cmp c[] = {
					equal(0, 0, families[f]),
					equal(1, SOCK_CLOEXEC | SOCK_NONBLOCK, types[t]),
					equal(2, 0, protocols[p]),
				};

				rule_array(ctx, SCMP_ACT_ALLOW, name, -1, 3, c);
			}
}

static void allow_pair(scmp_filter_ctx ctx, const char *name)
{
	rule_if_both(ctx, SCMP_ACT_ALLOW, name, equal(0, 0, AF_UNIX),
		equal(1, SOCK_CLOEXEC | SOCK_NONBLOCK, SOCK_STREAM));
}

static void allow_batch(scmp_filter_ctx ctx, const char *name)
{
	rule_if_both(ctx, SCMP_ACT_ALLOW, name, equal(0, 0, 0), equal(1, 0, SCHED_OTHER));
	rule_if_both(ctx, SCMP_ACT_ALLOW, name, equal(0, 0, 0), equal(1, 0, SCHED_BATCH));
}

/* The process id is filled in when the filter is installed. */
static void allow_self(scmp_filter_ctx ctx, const char *name)
{
	rule_if(ctx, SCMP_ACT_ALLOW, name, equal(0, 0, SELF_PLACEHOLDER));
}

static bool is_dialling(const char *name)
{
	return strcmp(name, "socket") == 0 || strcmp(name, "connect") == 0;
}

#define ALLOW allow
#define REFUSE refuse
#define KILL end_program
#define CODE allow_data
#define FLAGS allow_flags
#define INET allow_inet
#define PAIR allow_pair
#define BATCH allow_batch
#define SELF allow_self
#define SANITIZER (SANITIZED ? allow : refuse)

/* A broker that answers from a recording does not dial (INV-OFFLINE). */
static void print_program(const char *name, enum program program, bool offline)
{
	static struct filter filter;
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EPERM));

#define CALL(call, ...)                                                                            \
	(offline && is_dialling(#call) ? end_program                                               \
				       : (void (*const[])(scmp_filter_ctx, const char *)){         \
						 __VA_ARGS__}[program])(ctx, #call);
#include "jail/seccomp-programs.def"
	compile(ctx, &filter);
	seccomp_print(name, &filter);
}

int main(void)
{
	int r = seccomp_api_set(5);

	/* What filters may contain does not depend on this kernel, as none is loaded. */
	if (r < 0)
		seccomp_fail("seccomp_api_set", "", r);
	printf("/* Made by seccomp-gen from seccomp-rules.def and seccomp-programs.def. */\n");
	print_room("filter_room", false, false);
	print_room("filter_room_staying", false, true);
	print_room("filter_room_nested", true, false);
	print_room("filter_room_nested_staying", true, true);
	print_setgid("filter_ask_setgid", SCMP_ACT_NOTIFY);
	print_setgid("filter_no_setgid", SCMP_ACT_ERRNO(EPERM));
	print_dialling("filter_ask_dialling");
	printf("#define SELF_PLACEHOLDER 0x%xU\n", SELF_PLACEHOLDER);
	for (unsigned i = 0; i < ARRAY_SIZE(programs); i++)
		print_program(programs[i], i, false);
	print_program("filter_broker_offline", BROKER, true);
	return ferror(stdout) || fflush(stdout) != 0;
}
