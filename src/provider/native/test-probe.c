/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "jail/landlock.h"
#include "provider/native/probe.h"
#include "tap.h"

#include <dirent.h>

/* Whatever the machine has, every probe gives a complete answer. */
static void every_probe_answers(void)
{
	struct probe_result p[PROBE_END_ + 1];
	size_t i, n = probe_all(p, PROBE_END_ + 1);

	check_int(n, PROBE_END_);
	for (i = 0; i < n; i++) {
		printf("# %s: %s%s%s%s%s\n", p[i].name, p[i].works ? "yes" : "no",
			p[i].detail[0] ? ", " : "", p[i].detail, p[i].remedy[0] ? "; " : "",
			p[i].remedy);
		check(p[i].name && p[i].name[0]);
		check(p[i].works || p[i].detail[0]);
		check(p[i].works == !p[i].remedy[0]);
	}
	check_int(probe_all(p, 2), 2);
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
	struct probe_result p[PROBE_END_];
	unsigned before = descriptors();

	check_int(probe_all(p, PROBE_END_), PROBE_END_);
	check_int(descriptors(), before);
}

static void landlock_agrees(void)
{
	struct probe_result p;

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
