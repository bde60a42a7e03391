/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each secret has pages of its own, [guard][header + value][guard]. The pages
 * are locked (best effort: an ordinary user's RLIMIT_MEMLOCK may be small), left out of core dumps
 * and wiped in a forked child. Values are few and small, so whole pages are affordable. */
#include "base/secmem.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct secret {
	size_t mapped; /* whole mapping, guards included */
	size_t n;
	char value[];
};

struct secret *secret_new(const void *p, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), body, mapped;
	struct secret *s;
	char *base;

	if (n > (size_t)1 << 24)
		return NULL;
	body = (sizeof(struct secret) + n + page - 1) / page * page;
	mapped = body + 2 * page;
	base = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (mprotect(base + page, body, PROT_READ | PROT_WRITE) < 0) {
		munmap(base, mapped);
		return NULL;
	}
	(void)mlock(base + page, body);
	(void)madvise(base + page, body, MADV_DONTDUMP);
	(void)madvise(base + page, body, MADV_WIPEONFORK);
	s = (struct secret *)(void *)(base + page);
	s->mapped = mapped;
	s->n = n;
	if (n)
		memcpy(s->value, p, n);
	return s;
}

struct secret *secret_free(struct secret *s)
{
	if (s) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = s->mapped;

		explicit_bzero(s, sizeof(*s) + s->n);
		munmap((char *)s - page, mapped);
	}
	return NULL;
}

struct str secret_reveal(const struct secret *s)
{
	return s ? str_make(s->value, s->n) : STR_NULL;
}

void secret_harden_process(void)
{
	const struct rlimit none = {0, 0};

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
}
