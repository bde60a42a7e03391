/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/narrow.h"
#include "base/parse.h"
#include "jail/caps.h"
#include "jail/landlock.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Leave the real-time scheduling that the caller may have. (The wrappers of musl fail.) A niceness
 * below 0, which the caller has chosen, is kept. */
static int narrow_leave_real_time(struct cloche_err *err)
{
	const struct sched_param ordinary = {0};
	int policy = (int)syscall(SYS_sched_getscheduler, 0);

	if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE)
		return 0;
	if (policy < 0 || syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary) < 0)
		return err_sys(err, errno, "leave the caller's real-time scheduling");
	return 0;
}

#define RESOURCE_KEY "rlimit="

void narrow_put_word(int resource, uint64_t value, char ret[NARROW_WORD])
{
	snprintf(ret, NARROW_WORD, RESOURCE_KEY "%d:%llu", resource, (unsigned long long)value);
}

bool narrow_take_word(struct narrow *n, const char *word)
{
	struct str rest = str_from(word), number;
	uint64_t resource;

	if (!str_starts(rest, STR(RESOURCE_KEY)))
		return false;
	rest = str_from_index(rest, strlen(RESOURCE_KEY));
	number = str_next(&rest, ':');
	return parse_u64(number, RLIM_NLIMITS - 1, &resource) == 0 &&
	       parse_u64(rest, INT64_MAX, &n->resources[resource]) == 0;
}

int narrow_limits(const struct narrow *n, struct cloche_err *err)
{
	static const struct {
		int resource;
		uint64_t value;
	} always[] = {
		/* With 0, the kernel would still start a core handler of the host; see
		 * seccomp-gen.c. */
		{RLIMIT_CORE, 1},
		/* A cpu limit does not bind real-time processes. */
		{RLIMIT_RTPRIO, 0},
		{RLIMIT_NICE, 0},
	};
	int r = narrow_leave_real_time(err);

	for (int i = 0; i < RLIM_NLIMITS && r == 0; i++)
		if (n->resources[i])
			r = caps_rlimit(i, n->resources[i], err);
	for (size_t i = 0; i < ARRAY_SIZE(always) && r == 0; i++)
		r = caps_rlimit(always[i].resource, always[i].value, err);
	return r;
}

int narrow_process(const struct narrow *n, struct cloche_err *err)
{
	static const char *const root[] = {"/"};
	static const enum seccomp_filter filters[2][2] = {{SECCOMP_ROOM, SECCOMP_ROOM_STAYING},
		{SECCOMP_ROOM_NESTED, SECCOMP_ROOM_NESTED_STAYING}};
	uint64_t caps = n->nested ? CAPS_ROOM_NESTED : CAPS_ROOM;
	int r = caps_bound(caps, err);

	if (r == 0)
		r = caps_set(caps, err);
	if (r == 0)
		r = caps_no_new_privs(err);
	/* If Landlock restricts files, the kernel refuses every mount, even in a namespace of one's
	 * own. */
	if (r == 0)
		r = landlock_restrict(root, n->nested ? 0 : 1, err);
	return r < 0 ? r : seccomp_install(filters[n->nested][n->staying], err);
}

int narrow_program(enum seccomp_filter filter, struct cloche_err *err)
{
	/* If root started the program, what the filter allows could still use root's rights. */
	int r = caps_drop(err);

	if (r == 0)
		r = caps_no_new_privs(err);
	return r < 0 ? r : seccomp_install(filter, err);
}
