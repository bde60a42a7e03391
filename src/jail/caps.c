/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/caps.h"
#include "jail/sys.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int caps_clear_ambient(struct cloche_err *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return err_sys(err, errno, "drop the ambient capabilities");
	return 0;
}

bool caps_have(uint64_t wanted)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	return syscall(SYS_capget, &h, d) == 0 &&
	       !(wanted & ~(d[0].effective | (uint64_t)d[1].effective << 32));
}

/* INV-NO-PRIVILEGE */
int caps_bound(uint64_t keep, struct cloche_err *err)
{
	int cap, e, has;

	/* Capabilities are numbered without gaps: the first that cannot be dropped or read does not
	 * exist. A caller without SETPCAP may be bounded already. */
	for (cap = 0; cap < 64; cap++) {
		if ((keep & (1ULL << cap)) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		e = errno;
		has = e == EINVAL ? -1 : prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			break;
		if (has)
			return err_sys(err, e, "drop capability %d", cap);
	}
	return caps_clear_ambient(err);
}

int caps_set(uint64_t keep, struct cloche_err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	d[0].effective = d[0].permitted = (uint32_t)keep;
	d[1].effective = d[1].permitted = (uint32_t)(keep >> 32);
	if (syscall(SYS_capset, &h, d) < 0)
		return err_sys(err, errno, "drop capabilities");
	return 0;
}

int caps_drop(struct cloche_err *err)
{
	int r = caps_clear_ambient(err);

	/* The bounding set only limits what an exec could give back. A caller that may not narrow
	 * it has nothing to give back. */
	(void)!caps_bound(0, NULL);
	return r < 0 ? r : caps_set(0, err);
}

int caps_join_keyring(struct cloche_err *err)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0)
		return 0;
	/* EPERM: the filter of a container around us refuses this call, and with it every use of
	 * keys. */
	if (errno == ENOSYS || errno == EDQUOT || errno == EPERM)
		return 0;
	return err_sys(err, errno, "leave the session keyring");
}

int caps_no_new_privs(struct cloche_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "set no_new_privs");
	return 0;
}

int caps_rlimit(int resource, uint64_t value, struct cloche_err *err)
{
	struct rlimit l;

	if (sys_prlimit(resource, NULL, &l) < 0)
		return err_sys(err, errno, "read resource limit %d", resource);
	if (l.rlim_max == RLIM_INFINITY || l.rlim_max > value)
		l.rlim_max = value;
	l.rlim_cur = l.rlim_max;
	if (sys_prlimit(resource, &l, NULL) < 0)
		return err_sys(err, errno, "set resource limit %d", resource);
	return 0;
}
