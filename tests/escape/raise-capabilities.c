/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: raise capabilities, ambient ones, secure bits; take back no_new_privs and the bounding
 *    set
 * Wall: capabilities: the bounding set holds five, and nothing adds to it */
#include "attempt.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

int main(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
	struct __user_cap_data_struct admin[2] = {{1u << CAP_SYS_ADMIN, 1u << CAP_SYS_ADMIN, 0}};

	REFUSED(syscall(SYS_capset, &h, all));
	REFUSED(syscall(SYS_capset, &h, admin));
	REFUSED(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
	REFUSED(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0));
	REFUSED(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		escaped("no_new_privs");
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0)
		escaped("SYS_ADMIN is in the bounding set");
	REFUSED(prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
	return verdict();
}
