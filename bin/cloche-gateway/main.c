/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway.h"

#include <signal.h>
#include <sys/prctl.h>

int main(void)
{
	/* The channel's end says the same, but not to a process that stands still. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 125;
	return gateway_program();
}
