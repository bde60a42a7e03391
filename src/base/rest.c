/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: loading OpenSSL touches two megabytes of symbol tables and code, once. A
 * page of a file that was never written to can be dropped from an address space and read from the
 * page cache again. The parts of a program that the dynamic linker has written to (and later made
 * read-only) all lie in segments that the program header marks as writable; these stay. An object
 * with relocations in its code, which is unusual, is left alone. */
#include "base/rest.h"
#include "base/macro.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REST_KEEPS = 512 * 1024 };

static bool code_was_written(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) * d;

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		/* The header gives the address as a number, so there is no way without this
		 * cast. */
		d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL ||
				(d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

static int drop_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t *page = arg;

	if (code_was_written(info))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;

		if (p->p_type != PT_LOAD || (p->p_flags & PF_W))
			continue;
		from &= ~(*page - 1);
		to = (to + *page - 1) & ~(*page - 1);
		/* This fails for mappings without a file, such as the vdso, which is fine. */
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void rest_set_up(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, REST_KEEPS);
	mallopt(M_TRIM_THRESHOLD, REST_KEEPS);
#endif
}

void rest_memory(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

#ifdef __GLIBC__
	malloc_trim(0);
#endif
	dl_iterate_phdr(drop_object, &page);
}
