/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: lay out one's own memory as only the privileged may: PR_SET_MM, page 0, personalities
 *    that weaken
 * Wall: capabilities and seccomp */
#include "attempt.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>

int main(void)
{
	REFUSED(prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, open("/bin/sh", O_RDONLY), 0, 0));
	REFUSED(prctl(PR_SET_MM, PR_SET_MM_START_STACK, 4096, 0, 0));
	REFUSED(personality(READ_IMPLIES_EXEC));
	REFUSED(personality(MMAP_PAGE_ZERO));
	REFUSED(personality(ADDR_COMPAT_LAYOUT));
	REFUSED(personality(PER_LINUX32));
	if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		MAP_FAILED)
		escaped("page 0");
	return verdict();
}
