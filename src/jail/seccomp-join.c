/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: at each start, the kernel's cost for a filter grows with its length, and
 * each further filter costs extra. libseccomp writes a comparison for each call, but most calls
 * have the same answer as their neighbours.
 *
 * A filter looks at the number of the call, and then perhaps at arguments. For a given number, all
 * comparisons with the number can be decided here. What is left is the code for this call: usually
 * one answer, otherwise a check of arguments. If one filter allows the call, the code of the next
 * one follows. That code can only change at a number that some filter compares with, or just after
 * it. So it is made for each of these places, and dropped if it is the same as before. The parts
 * that remain are found by a binary search. */
#include "jail/seccomp-join.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define AND (BPF_ALU | BPF_AND | BPF_K)
#define RETURN (BPF_RET | BPF_K)
#define JUMP(op) (BPF_JMP | (op) | BPF_K)
#define OTHER_ARCH 0U

/* The calls from this number up to the next part's. */
struct part {
	uint32_t from;
	unsigned n;
	struct sock_filter *code;
	unsigned jump; /* in the whole filter: the part's only answer, or the jump to its code */
};

struct call {
	uint32_t arch, nr;
};

static unsigned put(struct filter *out, struct sock_filter f)
{
	if (out->n == BPF_MAXINSNS)
		seccomp_fail("length of", "a joined filter", EMSGSIZE);
	out->code[out->n] = f;
	return out->n++;
}

static bool holds(struct sock_filter f, uint32_t a)
{
	switch (f.code) {
	case JUMP(BPF_JEQ):
		return a == f.k;
	case JUMP(BPF_JGT):
		return a > f.k;
	case JUMP(BPF_JGE):
		return a >= f.k;
	default:
		seccomp_fail("instruction of", "a filter", EINVAL);
	}
}

static bool is_jump(struct sock_filter f)
{
	return BPF_CLASS(f.code) == BPF_JMP && f.code != (BPF_JMP | BPF_JA);
}

/* The code of one call under construction. It is made from its end backwards, as every jump leads
 * forward. */
struct making {
	const struct filter *const *filters;
	struct call call;
	struct filter *out;
	unsigned made[JOIN_MAX][BPF_MAXINSNS]; /* if not 0: the instruction is there, this far from
						* the end */
};

/* Return how far an instruction in front of everything made so far has to jump. */
static uint8_t distance(const struct making *m, unsigned to)
{
	if (m->out->n - to > UINT8_MAX)
		seccomp_fail("length of", "a call's part of a filter", EMSGSIZE);
	return (uint8_t)(m->out->n - to);
}

/* An instruction of a filter, and the value that is loaded there if it is known. */
struct place {
	unsigned filter, at;
	const uint32_t *loaded;
};

/* Go on to the next instruction if this one is decided for the call. */
static bool pass(const struct making *m, struct place *p)
{
	static const uint32_t zero;
	const struct sock_filter *code = &m->filters[p->filter]->code[p->at], f = *code;
	unsigned skip = 0;

	if (f.code == LOAD && f.k == offsetof(struct seccomp_data, nr))
		p->loaded = &m->call.nr;
	else if (f.code == LOAD && f.k == offsetof(struct seccomp_data, arch))
		p->loaded = &m->call.arch;
	else if (f.code == LOAD && code[1].code == AND && code[1].k == 0) {
		/* The upper half of an argument of 32 bits. */
		p->loaded = &zero;
		skip = 1;
	} else if (f.code == (BPF_JMP | BPF_JA))
		skip = f.k;
	else if (is_jump(f) && p->loaded)
		skip = holds(f, *p->loaded) ? f.jt : f.jf;
	else if (f.code == RETURN && f.k == SECCOMP_RET_ALLOW && m->filters[p->filter + 1]) {
		*p = (struct place){.filter = p->filter + 1};
		return true;
	} else
		return false;
	p->at += 1 + skip;
	return true;
}

/* Make what is left of the filters from p on. Return how far from the end it is. */
static unsigned make(struct making *m, struct place p)
{
	unsigned there, yes, no;
	struct sock_filter f;

	while (pass(m, &p))
		;
	there = m->made[p.filter][p.at];
	if (there)
		return there;
	f = m->filters[p.filter]->code[p.at];
	if (is_jump(f)) {
		yes = make(m, (struct place){p.filter, p.at + 1 + f.jt, NULL});
		no = make(m, (struct place){p.filter, p.at + 1 + f.jf, NULL});
		f.jt = distance(m, yes);
		f.jf = distance(m, no);
	} else if (f.code == LOAD || (f.code == AND && !p.loaded)) {
		no = make(m, (struct place){p.filter, p.at + 1, NULL});
		if (distance(m, no) > 0)
			put(m->out,
				(struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, distance(m, no)));
	} else if (f.code != RETURN) {
		seccomp_fail("instruction of", "a filter", EINVAL);
	}
	put(m->out, f);
	return m->made[p.filter][p.at] = m->out->n;
}

static void follow(const struct filter *const *filters, const struct call *call, struct filter *out)
{
	static struct making m;

	memset(&m, 0, sizeof(m));
	m.filters = filters;
	m.call = *call;
	m.out = out;
	out->n = 0;
	(void)make(&m, (struct place){0});
	for (unsigned i = 0; i < out->n / 2; i++) {
		struct sock_filter f = out->code[i];

		out->code[i] = out->code[out->n - 1 - i];
		out->code[out->n - 1 - i] = f;
	}
}

/* Make the code for one call. A filter that ends the process comes before the others; it never
 * decides that by an argument. */
static void specialise(
	const struct filter *const *filters, const struct call *call, struct filter *out)
{
	for (size_t i = 0; filters[i]; i++) {
		const struct filter *const alone[] = {filters[i], NULL};

		follow(alone, call, out);
		if (out->code[0].code == RETURN && out->code[0].k == SECCOMP_RET_KILL_PROCESS)
			return;
		for (unsigned j = 0; j < out->n; j++)
			if (out->code[j].code == RETURN &&
				out->code[j].k == SECCOMP_RET_KILL_PROCESS)
				seccomp_fail("answer of", "a filter", EINVAL);
	}
	follow(filters, call, out);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Store in ret the numbers where the code can change, in ascending order. ret has room for 2 *
 * JOIN_MAX * BPF_MAXINSNS numbers. */
static size_t find_places(const struct filter *const *filters, uint32_t *ret)
{
	size_t n = 0, kept = 0;

	ret[n++] = 0;
	for (; *filters; filters++)
		for (unsigned i = 0; i < (*filters)->n; i++) {
			struct sock_filter f = (*filters)->code[i];

			if (!is_jump(f))
				continue;
			ret[n++] = f.k;
			if (f.k < UINT32_MAX)
				ret[n++] = f.k + 1;
		}
	qsort(ret, n, sizeof(*ret), compare_numbers);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || ret[i] != ret[i - 1])
			ret[kept++] = ret[i];
	return kept;
}

static bool is_same(const struct part *a, const struct part *b)
{
	return a->n == b->n && memcmp(a->code, b->code, a->n * sizeof(a->code[0])) == 0;
}

static size_t make_parts(const struct filter *const *filters, struct part *ret)
{
	static uint32_t places[2 * JOIN_MAX * BPF_MAXINSNS + 1];
	static struct filter code;
	size_t places_n = find_places(filters, places), n = 0;

	for (size_t i = 0; i < places_n; i++) {
		const struct call call = {seccomp_arch_native(), places[i]};
		size_t size;

		specialise(filters, &call, &code);
		size = code.n * sizeof(code.code[0]);
		ret[n] = (struct part){.from = places[i], .n = code.n, .code = malloc(size)};
		if (!ret[n].code)
			seccomp_fail("memory for", "a filter", ENOMEM);
		memcpy(ret[n].code, code.code, size);
		if (n && is_same(&ret[n], &ret[n - 1]))
			free(ret[n].code);
		else
			n++;
	}
	return n;
}

/* Code longer than one answer follows after the search, once for all parts that share it. */
static void search(struct part *parts, size_t n, struct filter *out)
{
	unsigned jump, far;

	if (n == 1) {
		parts->jump =
			put(out, parts->n == 1 ? parts->code[0]
					       : (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
		return;
	}
	jump = put(out, (struct sock_filter)BPF_JUMP(JUMP(BPF_JGE), parts[n / 2].from, 0, 0));
	search(parts, n / 2, out);
	far = out->n - jump - 1;
	if (far > UINT8_MAX)
		seccomp_fail("number of", "parts of a filter", EMSGSIZE);
	out->code[jump].jt = (uint8_t)far;
	search(parts + n / 2, n - n / 2, out);
}

static void put_long(const struct part *parts, size_t n, struct filter *out)
{
	for (size_t i = 0; i < n; i++) {
		if (parts[i].n == 1 || out->code[parts[i].jump].k)
			continue;
		for (size_t j = i; j < n; j++)
			if (is_same(&parts[j], &parts[i]))
				out->code[parts[j].jump].k = out->n - parts[j].jump - 1;
		for (unsigned j = 0; j < parts[i].n; j++)
			put(out, parts[i].code[j]);
	}
}

void seccomp_join(const struct filter *const *filters, struct filter *ret)
{
	static struct part parts[2 * JOIN_MAX * BPF_MAXINSNS + 1];
	const struct call other = {.arch = OTHER_ARCH};
	const size_t n = make_parts(filters, parts);

	specialise(filters, &other, ret);
	if (ret->n != 1)
		seccomp_fail("answer of", "a filter to another architecture", EINVAL);
	*ret = (struct filter){
		.code = {BPF_STMT(LOAD, offsetof(struct seccomp_data, arch)),
			BPF_JUMP(JUMP(BPF_JEQ), seccomp_arch_native(), 1, 0), ret->code[0],
			BPF_STMT(LOAD, offsetof(struct seccomp_data, nr))},
		.n = 4};
	search(parts, n, ret);
	put_long(parts, n, ret);
	for (size_t i = 0; i < n; i++)
		free(parts[i].code);
}

void seccomp_print(const char *name, const struct filter *f)
{
	printf("static const struct sock_filter %s[] = {\n", name);
	for (unsigned i = 0; i < f->n; i++)
		printf("\t{0x%04x, %u, %u, 0x%08x},\n", f->code[i].code, f->code[i].jt,
			f->code[i].jf, f->code[i].k);
	printf("};\n");
}
