/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"
#include "base/err.h"
#include "base/secmem.h"
#include "jail/landlock.h"
#include "jail/narrow.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static int narrow_common(void)
{
	const struct rlimit none = {0, 0};

	secret_harden_process();
	if (setrlimit(RLIMIT_NPROC, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return 0;
}

int narrow_room(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	return narrow_common() < 0 ? -1 : narrow_program(SECCOMP_SSH_ROOM, &err);
}

int narrow_origin(const char *const paths[2])
{
	const struct landlock_grant grants[] = {{.path = paths[0]}, {.path = paths[1]}};
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (narrow_common() < 0 || landlock_grants(grants, ARRAY_SIZE(grants), false, &err) < 0)
		return -1;
	return narrow_program(SECCOMP_SSH_ORIGIN, &err);
}
