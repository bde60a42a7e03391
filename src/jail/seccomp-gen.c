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

static void rule(scmp_filter_ctx ctx, uint32_t action, const char *name, int nr, unsigned n,
	const struct scmp_arg_cmp *cmp)
{
	int r, call = number(name, nr);

	if (call < 0)
		return;
	r = seccomp_rule_add_array(ctx, action, call, n, cmp);
	if (r < 0)
		seccomp_fail("rule for", name, r);
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

static void print_filter(const char *name, const struct filter *f)
{
	printf("static const struct sock_filter %s[] = {\n", name);
	for (unsigned i = 0; i < f->n; i++)
		printf("\t{0x%04x, %u, %u, 0x%08x},\n", f->code[i].code, f->code[i].jt,
			f->code[i].jf, f->code[i].k);
	printf("};\n");
}

/* Nested namespaces never include a cgroup namespace: in one of its own, a process inside could
 * mount the cgroup files and, if the room's group belongs to the user, lift its limits. */
static void allow_clone(scmp_filter_ctx ctx, bool nested)
{
	const uint64_t flags = nested ? CLONE_NEWCGROUP : NS_FLAGS;
	const struct scmp_arg_cmp clone = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, flags, 0);
	const struct scmp_arg_cmp unshare = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, flags | NEWTIME, 0);

	rule(ctx, SCMP_ACT_ALLOW, "clone", -1, 1, &clone);
	rule(ctx, SCMP_ACT_ALLOW, "unshare", -1, 1, &unshare);
}

/* Allow the families that stay inside the room's network namespace; of the internet families, only
 * the protocols that tools use, since a socket of any other would load its module into the host's
 * kernel. Allow netlink only for the routing tables, which getifaddrs() reads. */
static void allow_socket(scmp_filter_ctx ctx)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};
	static const uint64_t protocols[] = {
		0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6};
	const struct scmp_arg_cmp local = SCMP_CMP64(0, SCMP_CMP_EQ, AF_UNIX, 0);
	const struct scmp_arg_cmp netlink[] = {
		SCMP_CMP64(0, SCMP_CMP_EQ, AF_NETLINK, 0),
		SCMP_CMP64(2, SCMP_CMP_EQ, NETLINK_ROUTE, 0),
	};
	size_t i, k;

	rule(ctx, SCMP_ACT_ALLOW, "socket", -1, 1, &local);
	rule(ctx, SCMP_ACT_ALLOW, "socketpair", -1, 1, &local);
	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		for (k = 0; k < sizeof(protocols) / sizeof(protocols[0]); k++) {
			const struct scmp_arg_cmp c[] = {
				SCMP_CMP64(0, SCMP_CMP_EQ, families[i], 0),
				SCMP_CMP64(2, SCMP_CMP_EQ, protocols[k], 0),
			};

			rule(ctx, SCMP_ACT_ALLOW, "socket", -1, 2, c);
		}
	rule(ctx, SCMP_ACT_ALLOW, "socket", -1, 2, netlink);
}

/* Allow reading the personality, and setting the plain one, with or without address space
 * randomization, which debuggers switch off. */
static void allow_personality(scmp_filter_ctx ctx)
{
	static const uint64_t values[] = {0, 0x0040000, LOW32, UINT64_MAX};
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct scmp_arg_cmp c = SCMP_CMP64(0, SCMP_CMP_EQ, values[i], 0);

		rule(ctx, SCMP_ACT_ALLOW, "personality", -1, 1, &c);
	}
}

static void compile_allowlist(bool nested, struct filter *ret)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(ENOSYS));
	const uint32_t if_nested = nested ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM);

#define ALLOW(name) rule(ctx, SCMP_ACT_ALLOW, #name, -1, 0, NULL);
#define ALLOW_NR(name, nr) rule(ctx, SCMP_ACT_ALLOW, #name, nr, 0, NULL);
#define DENY(name) rule(ctx, SCMP_ACT_ERRNO(EPERM), #name, -1, 0, NULL);
#define NESTED(name) rule(ctx, if_nested, #name, -1, 0, NULL);
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
	static const uint64_t families[] = {AF_INET, AF_INET6};
	const struct scmp_arg_cmp family = SCMP_CMP64(0, SCMP_CMP_GT, AF_NETLINK, 0);
	const struct scmp_arg_cmp pair = SCMP_CMP64(0, SCMP_CMP_NE, AF_UNIX, 0);
	const struct scmp_arg_cmp diag[] = {
		SCMP_CMP64(0, SCMP_CMP_EQ, AF_NETLINK, 0),
		SCMP_CMP64(2, SCMP_CMP_GT, NETLINK_ROUTE, 0),
	};
	const struct scmp_arg_cmp high = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 8, 8);
	const struct scmp_arg_cmp dccp = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 15, SOCK_DCCP);
	uint64_t low;
	size_t i;

	for (low = AF_UNSPEC; low < AF_NETLINK; low++) {
		const struct scmp_arg_cmp c = SCMP_CMP64(0, SCMP_CMP_EQ, low, 0);

		if (low != AF_UNIX && low != AF_INET && low != AF_INET6)
			rule(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", -1, 1, &c);
	}
	rule(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", -1, 1, &family);
	rule(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socketpair", -1, 1, &pair);
	rule(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", -1, 2, diag);
	rule(ctx, SCMP_ACT_ERRNO(ESOCKTNOSUPPORT), "socket", -1, 1, &high);
	rule(ctx, SCMP_ACT_ERRNO(ESOCKTNOSUPPORT), "socket", -1, 1, &dccp);
	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct scmp_arg_cmp protocol[] = {
			SCMP_CMP64(0, SCMP_CMP_EQ, families[i], 0),
			SCMP_CMP64(2, SCMP_CMP_GT, IPPROTO_ICMPV6, 0),
		};

		rule(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", -1, 2, protocol);
	}
}

/* A crash must not reach the host's core handler, which runs as root outside: the kernel skips the
 * handler only if the limit is 1. That limit is already set (as the hard limit, so it cannot be
 * raised). An attempt to lower it succeeds but changes nothing. */
static void keep_core_limit(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp set = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW32, RLIMIT_CORE);
	const struct scmp_arg_cmp change[] = {
		SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW32, RLIMIT_CORE),
		SCMP_CMP64(2, SCMP_CMP_NE, 0, 0),
	};

	rule(ctx, SCMP_ACT_ERRNO(0), "setrlimit", -1, 1, &set);
	rule(ctx, SCMP_ACT_ERRNO(0), "prlimit64", -1, 2, change);
}

/* Process 1 belongs to the user that the room's processes run as, so the kernel would let them
 * change its limits and its scheduling. Refuse that with EPERM, as the kernel does for another
 * user's process. */
static void keep_init(scmp_filter_ctx ctx)
{
	static const char *const calls[] = {
		"sched_setscheduler", "sched_setparam", "sched_setaffinity", "sched_setattr"};
	static const struct {
		const char *name;
		uint64_t which[2]; /* a process, a group of processes */
	} others[] = {{"setpriority", {PRIO_PROCESS, PRIO_PGRP}}, {"ioprio_set", {1, 2}}};
	const struct scmp_arg_cmp change[] = {
		SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW32, 1),
		SCMP_CMP64(2, SCMP_CMP_NE, 0, 0),
	};
	size_t i, k;

	rule(ctx, SCMP_ACT_ERRNO(EPERM), "prlimit64", -1, 2, change);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		rule(ctx, SCMP_ACT_ERRNO(EPERM), calls[i], -1, 1, change);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (k = 0; k < 2; k++) {
			const struct scmp_arg_cmp c[] = {
				SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW32, others[i].which[k]),
				SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW32, 1),
			};

			rule(ctx, SCMP_ACT_ERRNO(EPERM), others[i].name, -1, 2, c);
		}
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
	const size_t flags_n = nested ? 1 : sizeof(flags) / sizeof(flags[0]);
	const struct scmp_arg_cmp time_ns = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, NEWTIME, NEWTIME);
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);
	size_t i;

	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct scmp_arg_cmp c = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW32, requests[i]);

		rule(ctx, SCMP_ACT_ERRNO(EPERM), "ioctl", -1, 1, &c);
	}
	for (i = 0; i < flags_n; i++) {
		const struct scmp_arg_cmp c = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, flags[i], flags[i]);

		rule(ctx, SCMP_ACT_ERRNO(EPERM), "clone", -1, 1, &c);
		rule(ctx, SCMP_ACT_ERRNO(EPERM), "unshare", -1, 1, &c);
	}
	rule(ctx, SCMP_ACT_ERRNO(EPERM), "unshare", -1, 1, &time_ns);
	refuse_sockets(ctx);
	keep_core_limit(ctx);
	keep_init(ctx);
	compile(ctx, ret);
}

/* Refuse every way to give a file a set-uid or set-gid bit. `arg` is the mode. This includes
 * message queues, which are files: an overlay copies their mode to wherever its upper layer lies.
 * mkdir() and shmget() do not take such bits, nor do the options of the file systems that can be
 * mounted inside. */
static void refuse_setid(scmp_filter_ctx ctx)
{
	static const struct {
		const char *name;
		int nr;
		unsigned arg;
	} calls[] = {{"chmod", -1, 1}, {"fchmod", -1, 1}, {"fchmodat", -1, 2},
		{"fchmodat2", 452, 2}, {"creat", -1, 1}, {"mknod", -1, 1}, {"mknodat", -1, 2}};
	static const struct {
		const char *name;
		unsigned flags, mode;
	} opens[] = {{"open", 1, 2}, {"openat", 2, 3}, {"mq_open", 1, 2}};
	static const uint64_t bits[] = {S_ISUID, S_ISGID};
	static const uint64_t creating[] = {0100 /* O_CREAT */, 020000000 /* O_TMPFILE's own */};
	size_t b, i, k;

	for (b = 0; b < sizeof(bits) / sizeof(bits[0]); b++) {
		for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			const struct scmp_arg_cmp c =
				SCMP_CMP64(calls[i].arg, SCMP_CMP_MASKED_EQ, bits[b], bits[b]);

			rule(ctx, SCMP_ACT_ERRNO(EPERM), calls[i].name, calls[i].nr, 1, &c);
		}
		for (i = 0; i < sizeof(opens) / sizeof(opens[0]); i++)
			for (k = 0; k < sizeof(creating) / sizeof(creating[0]); k++) {
				const struct scmp_arg_cmp c[] = {
					SCMP_CMP64(opens[i].flags, SCMP_CMP_MASKED_EQ, creating[k],
						creating[k]),
					SCMP_CMP64(opens[i].mode, SCMP_CMP_MASKED_EQ, bits[b],
						bits[b]),
				};

				rule(ctx, SCMP_ACT_ERRNO(EPERM), opens[i].name, -1, 2, c);
			}
	}
	rule(ctx, SCMP_ACT_ERRNO(ENOSYS), "openat2", -1, 0, NULL);
}

/* Making the character device 0:0, by which overlayfs marks what was deleted, needs no capability.
 * A process that can mount overlays needs it, and could also make it through them. */
static void refuse_devices(scmp_filter_ctx ctx)
{
	static const uint64_t types[] = {S_IFCHR, S_IFBLK};
	const struct scmp_arg_cmp whiteout = SCMP_CMP64(4, SCMP_CMP_MASKED_EQ, 4, 4);
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct scmp_arg_cmp mknod =
			SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, S_IFMT, types[i]);
		const struct scmp_arg_cmp mknodat =
			SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, S_IFMT, types[i]);

		rule(ctx, SCMP_ACT_ERRNO(EPERM), "mknod", -1, 1, &mknod);
		rule(ctx, SCMP_ACT_ERRNO(EPERM), "mknodat", -1, 1, &mknodat);
	}
	/* Behave as a file system that does not know this flag. */
	rule(ctx, SCMP_ACT_ERRNO(EINVAL), "renameat2", -1, 1, &whiteout);
}

/* Behave as a file system without extended attributes, which every tool copes with. */
static void refuse_xattr(scmp_filter_ctx ctx)
{
	rule(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "setxattr", -1, 0, NULL);
	rule(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "lsetxattr", -1, 0, NULL);
	rule(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), "fsetxattr", -1, 0, NULL);
}

static void compile_staying(bool nested, struct filter *ret)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	refuse_setid(ctx);
	if (nested)
		refuse_xattr(ctx);
	else
		refuse_devices(ctx);
	compile(ctx, ret);
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
	print_filter(name, &joined);
}

enum program { GATEWAY, BROKER, BROKER_OFFLINE, FORWARD };

/* Compare an argument that the kernel takes as 32 bits, ignoring the bits in `but`. */
static struct scmp_arg_cmp equal(unsigned arg, uint32_t but, uint32_t value)
{
	return SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, LOW32 & ~(uint64_t)but, value);
}

static void allow(scmp_filter_ctx ctx, const char *name)
{
	rule(ctx, SCMP_ACT_ALLOW, name, -1, 0, NULL);
}

/* Refusing is the filter's default. */
static void refuse(scmp_filter_ctx ctx, const char *name)
{
	(void)ctx;
	(void)name;
}

static void end_program(scmp_filter_ctx ctx, const char *name)
{
	rule(ctx, SCMP_ACT_KILL_PROCESS, name, -1, 0, NULL);
}

static void allow_data(scmp_filter_ctx ctx, const char *name)
{
	const struct scmp_arg_cmp c = SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);

	rule(ctx, SCMP_ACT_ALLOW, name, -1, 1, &c);
}

static void allow_flags(scmp_filter_ctx ctx, const char *name)
{
	static const uint32_t commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC};
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct scmp_arg_cmp c = equal(1, 0, commands[i]);

		rule(ctx, SCMP_ACT_ALLOW, name, -1, 1, &c);
	}
}

/* Other families, types and protocols reach more of the kernel, and some load modules. */
static void allow_inet(scmp_filter_ctx ctx, const char *name)
{
	static const uint32_t families[] = {AF_INET, AF_INET6};
	static const uint32_t types[] = {SOCK_STREAM, SOCK_DGRAM};
	static const uint32_t protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP};
	size_t f, t, p;

	for (f = 0; f < 2; f++)
		for (t = 0; t < 2; t++)
			for (p = 0; p < 3; p++) {
				const struct scmp_arg_cmp c[] = {
					equal(0, 0, families[f]),
					equal(1, SOCK_CLOEXEC | SOCK_NONBLOCK, types[t]),
					equal(2, 0, protocols[p]),
				};

				rule(ctx, SCMP_ACT_ALLOW, name, -1, 3, c);
			}
}

static void allow_batch(scmp_filter_ctx ctx, const char *name)
{
	static const uint32_t policies[] = {SCHED_OTHER, SCHED_BATCH};
	size_t i;

	for (i = 0; i < 2; i++) {
		const struct scmp_arg_cmp c[] = {equal(0, 0, 0), equal(1, 0, policies[i])};

		rule(ctx, SCMP_ACT_ALLOW, name, -1, 2, c);
	}
}

/* The process id is filled in when the filter is installed. */
static void allow_self(scmp_filter_ctx ctx, const char *name)
{
	const struct scmp_arg_cmp c = equal(0, 0, SELF_PLACEHOLDER);

	rule(ctx, SCMP_ACT_ALLOW, name, -1, 1, &c);
}

/* A broker that answers from a recording does not make these calls (INV-OFFLINE). */
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
#define BATCH allow_batch
#define SELF allow_self
#define SANITIZER sanitizer

static void print_unpack(void)
{
	static struct filter filter;
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EPERM));
	void (*const sanitizer)(scmp_filter_ctx, const char *) = SANITIZED ? allow : refuse;

#define CALL(name, verdict) (verdict)(ctx, #name);
#include "jail/seccomp-unpack.def"
	compile(ctx, &filter);
	print_filter("filter_unpack", &filter);
}

static void print_self(const char *name, enum program program)
{
	static struct filter filter;
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EPERM));
	void (*const sanitizer)(scmp_filter_ctx, const char *) = SANITIZED ? allow : refuse;

#define CALL(name, gateway, broker, forward)                                                       \
	(program == GATEWAY                                       ? (gateway)                      \
		: program == BROKER_OFFLINE && is_dialling(#name) ? end_program                    \
		: program == FORWARD                              ? (forward)                      \
								  : (broker))(ctx, #name);
#include "jail/seccomp-programs.def"
	compile(ctx, &filter);
	print_filter(name, &filter);
}

int main(void)
{
	int r = seccomp_api_set(3);

	/* What filters may contain does not depend on this kernel, as none is loaded. */
	if (r < 0)
		seccomp_fail("seccomp_api_set", "", r);
	printf("/* Made by seccomp-gen from seccomp-rules.def, seccomp-programs.def and "
	       "seccomp-unpack.def. */\n");
	print_room("filter_room", false, false);
	print_room("filter_room_staying", false, true);
	print_room("filter_room_nested", true, false);
	print_room("filter_room_nested_staying", true, true);
	printf("#define SELF_PLACEHOLDER 0x%xU\n", SELF_PLACEHOLDER);
	print_self("filter_gateway", GATEWAY);
	print_self("filter_broker", BROKER);
	print_self("filter_broker_offline", BROKER_OFFLINE);
	print_self("filter_forward", FORWARD);
	print_unpack();
	return ferror(stdout) || fflush(stdout) != 0;
}
