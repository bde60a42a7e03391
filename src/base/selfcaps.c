/* SPDX-License-Identifier: Apache-2.0 */
#include "base/selfcaps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int selfcaps_drop(struct cloche_err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* The bounding set only bounds what an exec could give back; without CAP_SETPCAP there is
	 * nothing to give. EINVAL: past the last capability that this kernel knows. */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return err_sys(err, errno, "clear ambient capabilities");
	if (syscall(SYS_capset, &head, none) < 0)
		return err_sys(err, errno, "drop capabilities");
	return 0;
}
