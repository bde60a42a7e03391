/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pids.h"
#include "tap.h"

static void test_they_keep_their_order(void)
{
	struct pids p = {0};

	check(!pids_has(&p, 1));
	for (pid_t pid = 30000; pid > 0; pid -= 3)
		must(pids_add(&p, pid));
	check_int(p.n, 10000);
	check_int(p.all[0], 30000);
	check_int(p.all[9999], 3);
	check(pids_has(&p, 3) && pids_has(&p, 29997) && !pids_has(&p, 4) && !pids_has(&p, 30003));
	pids_done(&p);
	check(!pids_has(&p, 3));
	check_int(p.n, 0);
}

static void test_pids_that_cannot_be(void)
{
	struct pids p = {0};

	check(!pids_add(&p, 0) && !pids_add(&p, -1) && !pids_add(&p, (4 << 20) + 1));
	check(!pids_has(&p, 0) && !pids_has(&p, -1) && !pids_has(&p, (4 << 20) + 1));
	check(pids_add(&p, 4 << 20) && pids_has(&p, 4 << 20));
	check_int(p.n, 1);
	pids_done(&p);
}

int main(void)
{
	run_test(test_they_keep_their_order);
	run_test(test_pids_that_cannot_be);
	return tap_done();
}
