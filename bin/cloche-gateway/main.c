/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway.h"

#include <signal.h>
#include <sys/prctl.h>

int main(void)
{
	/* End with the supervisor. A stopped process would not notice that the channel is closed.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 125;
	return gateway_program();
}
