/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "jail/landlock.h"
#include "room/probe.h"
#include "tap.h"

#include <dirent.h>

/* Whatever the machine has, every probe gives a complete answer. */
static void every_probe_answers(void)
{
	struct provider_check p;

	for (int i = 0; i < PROBE_END_; i++) {
		probe_one((enum probe_feature)i, &p);
		printf("# %s: %s%s%s%s%s\n", p.name, p.works ? "yes" : "no",
			p.detail[0] ? ", " : "", p.detail, p.remedy[0] ? "; " : "", p.remedy);
		check(p.name && p.name[0]);
		check(p.works || p.detail[0]);
		check(p.works == !p.remedy[0]);
	}
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	must(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* A program that lives long may probe often. */
static void no_descriptor_stays_open(void)
{
	unsigned before = descriptors();
	struct provider_check p;

	for (int i = 0; i < PROBE_END_; i++)
		probe_one((enum probe_feature)i, &p);
	check_int(descriptors(), before);
}

static void landlock_agrees(void)
{
	struct provider_check p;

	probe_one(PROBE_LANDLOCK, &p);
	check_int(p.works, landlock_abi() > 0);
}

int main(void)
{
	run_test(every_probe_answers);
	run_test(no_descriptor_stays_open);
	run_test(landlock_agrees);
	return tap_done();
}
