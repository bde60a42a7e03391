/* SPDX-License-Identifier: Apache-2.0 */
/* A joined filter answers what the kernel answers for its parts, whatever the call. */
#include "base/macro.h"
#include "jail/seccomp-join.h"
#include "tap.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void seccomp_fail(const char *what, const char *name, int r)
{
	printf("Bail out! %s %s: %s\n", what, name, strerror(r));
	exit(1);
}

static uint32_t run(const struct filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (unsigned at = 0;;) {
		struct sock_filter c = f->code[at++];

		must(at <= f->n);
		if (c.code == (BPF_RET | BPF_K))
			return c.k;
		if (c.code == (BPF_LD | BPF_W | BPF_ABS))
			memcpy(&a, (const char *)d + c.k, sizeof(a));
		else if (c.code == (BPF_ALU | BPF_AND | BPF_K))
			a &= c.k;
		else if (c.code == (BPF_JMP | BPF_JA))
			at += c.k;
		else if (c.code == (BPF_JMP | BPF_JEQ | BPF_K))
			at += a == c.k ? c.jt : c.jf;
		else if (c.code == (BPF_JMP | BPF_JGT | BPF_K))
			at += a > c.k ? c.jt : c.jf;
		else {
			must(c.code == (BPF_JMP | BPF_JGE | BPF_K));
			at += a >= c.k ? c.jt : c.jf;
		}
	}
}

/* As seccomp_run_filters() in kernel/seccomp.c, which begins with the one that came last. */
static uint32_t run_all(const struct filter *const *filters, const struct seccomp_data *d)
{
	uint32_t all = SECCOMP_RET_ALLOW;

	for (; *filters; filters++) {
		uint32_t one = run(*filters, d);

		if ((int32_t)(one & SECCOMP_RET_ACTION_FULL) <
			(int32_t)(all & SECCOMP_RET_ACTION_FULL))
			all = one;
	}
	return all;
}

static void compile(scmp_filter_ctx ctx, struct filter *ret)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);

	must(seccomp_export_bpf(ctx, fd) == 0);
	ret->n = (unsigned)pread(fd, ret->code, sizeof(ret->code), 0) / sizeof(ret->code[0]);
	must(ret->n > 0);
	close(fd);
	seccomp_release(ctx);
}

static scmp_filter_ctx begin(uint32_t action)
{
	scmp_filter_ctx ctx = seccomp_init(action);

	must(ctx && seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0);
	must(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0);
	return ctx;
}

/* A list of calls, two of them by their arguments. */
static void make_list(struct filter *ret)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ERRNO(ENOSYS));

	for (int nr = 0; nr < 300; nr += nr % 7 ? 1 : 2)
		if (nr != 41 && nr != 56)
			must(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0) == 0);
	must(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, 41, 2, SCMP_A0_64(SCMP_CMP_EQ, 2),
		     SCMP_A1_64(SCMP_CMP_LT, 5)) == 0);
	must(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, 56, 1,
		     SCMP_A0_64(SCMP_CMP_MASKED_EQ, 0x7e020000, 0)) == 0);
	compile(ctx, ret);
}

static void make_refusals(struct filter *ret, int error, uint64_t value)
{
	static const int calls[] = {16, 41, 56, 100, 101, 299, 400};
	scmp_filter_ctx ctx = begin(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)error), calls[i], 1,
			     SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffff, value)) == 0);
	must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)error), 50 + error, 0) == 0);
	compile(ctx, ret);
}

static struct filter first, second, list, joined;

static unsigned count_differences(const struct filter *const *filters, uint32_t nr, uint32_t arch)
{
	static const uint64_t values[] = {0, 1, 2, 3, 4, 5, 0x20000, 0x7e020000, 0xffffffff,
		0x100000002, 0x200000000, UINT64_MAX};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			const struct seccomp_data d = {
				.nr = (int)nr, .arch = arch, .args = {values[i], values[k]}};

			n += run(&joined, &d) != run_all(filters, &d);
		}
	return n;
}

static void joined_answers_as_all(const struct filter *const *filters)
{
	static const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0};
	uint32_t native = seccomp_arch_native();
	unsigned n = 0;

	seccomp_join(filters, &joined);
	for (uint32_t nr = 0; nr < 1000; nr++)
		n += count_differences(filters, nr, native) +
		     count_differences(filters, 0x40000000 - 500 + nr, native) +
		     count_differences(filters, UINT32_MAX - nr, native);
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		n += count_differences(filters, 1, archs[i]);
	check_int(n, 0);
}

static void one_alone(void)
{
	const struct filter *const filters[] = {&list, NULL};

	joined_answers_as_all(filters);
	check(joined.n < list.n);
}

static void two_and_three(void)
{
	const struct filter *const two[] = {&first, &list, NULL};
	const struct filter *const three[] = {&first, &list, &second, NULL};

	joined_answers_as_all(two);
	joined_answers_as_all(three);
	check(joined.n < first.n + list.n + second.n);
}

int main(void)
{
	make_list(&list);
	make_refusals(&first, EPERM, 1);
	make_refusals(&second, EOPNOTSUPP, 3);
	run_test(one_alone);
	run_test(two_and_three);
	return tap_done();
}
