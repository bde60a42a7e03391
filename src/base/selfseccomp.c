/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the program checks the architecture, loads the number and compares it with
 * one entry after the other (at most a few dozen, each two instructions):
 *
 *	load arch; if != ours: kill
 *	load nr; on x86-64: if >= x32 bit: kill
 *	for each entry: if nr == entry: return its action
 *	return EPERM
 *
 * An entry that looks at an argument jumps over a small block that does so. After the number's own
 * entry the number is not looked at again, so such a block may use the accumulator. */
#include "base/selfseccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86-64 and arm64"
#endif

enum { MAX_CALLS = 128, MAX_CODE = MAX_CALLS * 14 + 8 };

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

struct program {
	struct sock_filter code[MAX_CODE];
	unsigned short n;
};

static void emit(struct program *p, struct sock_filter instruction)
{
	p->code[p->n++] = instruction;
}

static void emit_all(struct program *p, const struct sock_filter *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit(p, code[i]);
}

/* Low halves of arguments: both architectures are little-endian, and the kernel takes these
 * arguments as 32 bits. */
static void emit_no_exec(struct program *p, uint16_t nr)
{
	const struct sock_filter code[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		RETURN(REFUSE),
		RETURN(SECCOMP_RET_ALLOW),
	};

	emit_all(p, code, ARRAY_SIZE(code));
}

/* Allowed where the argument is one of the n values. */
static void emit_one_of(
	struct program *p, uint16_t nr, unsigned arg, const uint32_t *values, size_t n)
{
	const struct sock_filter first[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, (uint8_t)(n + 3)),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			(uint32_t)(offsetof(struct seccomp_data, args) + 8U * arg)),
	};

	emit_all(p, first, ARRAY_SIZE(first));
	for (size_t i = 0; i < n; i++)
		emit(p, (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(n - i), 0));
	emit(p, (struct sock_filter)RETURN(REFUSE));
	emit(p, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
}

/* Family, type without its flags, protocol: the others lead to more of the kernel, some by loading
 * modules. */
static void emit_inet(struct program *p, uint16_t nr)
{
	const struct sock_filter code[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 13),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 9),
		LOAD(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 0, 5),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(REFUSE),
	};

	emit_all(p, code, ARRAY_SIZE(code));
}

static void emit_batch(struct program *p, uint16_t nr)
{
	const struct sock_filter code[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 7),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SCHED_OTHER, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SCHED_BATCH, 1, 0),
		RETURN(REFUSE),
		RETURN(SECCOMP_RET_ALLOW),
	};

	emit_all(p, code, ARRAY_SIZE(code));
}

static void emit_call(struct program *p, const struct selfseccomp_call *c)
{
	static const uint32_t commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC};
	const uint32_t self = (uint32_t)getpid();

	switch ((enum selfseccomp_rule)c->rule) {
	case SELFSECCOMP_NO_EXEC:
		emit_no_exec(p, c->nr);
		return;
	case SELFSECCOMP_INET:
		emit_inet(p, c->nr);
		return;
	case SELFSECCOMP_FLAGS:
		emit_one_of(p, c->nr, 1, commands, ARRAY_SIZE(commands));
		return;
	case SELFSECCOMP_SELF:
		emit_one_of(p, c->nr, 0, &self, 1);
		return;
	case SELFSECCOMP_BATCH:
		emit_batch(p, c->nr);
		return;
	case SELFSECCOMP_ALLOW:
	case SELFSECCOMP_KILL:
		break;
	}
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->nr, 0, 1));
	emit(p, (struct sock_filter)RETURN(c->rule == SELFSECCOMP_ALLOW
						   ? SECCOMP_RET_ALLOW
						   : SECCOMP_RET_KILL_PROCESS));
}

int selfseccomp_install(const struct selfseccomp_call *calls, size_t n, struct cloche_err *err)
{
	struct program p = {.n = 0};
	struct sock_fprog prog = {.filter = p.code};

	if (n > MAX_CALLS)
		return err_set(err, E_INTERNAL, "too many system calls in a filter");
	emit(&p, (struct sock_filter)LOAD(arch));
	emit(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0));
	emit(&p, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
	emit(&p, (struct sock_filter)LOAD(nr));
#ifdef X32_BIT
	emit(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
	emit(&p, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
#endif
	for (size_t i = 0; i < n; i++)
		emit_call(&p, &calls[i]);
	emit(&p, (struct sock_filter)RETURN(REFUSE));
	prog.len = p.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "set no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return err_sys(err, errno, "install the system call filter");
	return 0;
}
