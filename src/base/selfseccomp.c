/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the program checks the architecture, loads the number and compares it with
 * one entry after the other (at most a few dozen, each two instructions):
 *
 *	load arch; if != ours: kill
 *	load nr; on x86-64: if >= x32 bit: kill
 *	for each entry: if nr == entry: return its action
 *	return EPERM
 *
 * A no-exec entry jumps over a small block that looks at the protection bits. */
#include "base/selfseccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

enum { MAX_CALLS = 128, MAX_CODE = MAX_CALLS * 6 + 8 };

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

static void emit_call(struct program *p, const struct selfseccomp_call *c)
{
	/* Low half of the third argument: both architectures are little-endian. */
	const struct sock_filter no_exec[] = {
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		RETURN(REFUSE),
		RETURN(SECCOMP_RET_ALLOW),
	};

	if (c->rule == SELFSECCOMP_NO_EXEC) {
		emit(p, (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, c->nr, 0, ARRAY_SIZE(no_exec)));
		for (size_t i = 0; i < ARRAY_SIZE(no_exec); i++)
			emit(p, no_exec[i]);
		return;
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
