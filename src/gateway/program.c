/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway.h"
#include "gateway/narrow.h"
#include "ipc/helper.h"
#include "loop/loop.h"

#include <unistd.h>

enum { SPARE_DESCRIPTORS = 64 };

static int report(const struct cloche_err *err)
{
	struct chan c;
	int r = chan_init(&c, HELPER_FD_SUPERVISOR, HELPER_MAX_PAYLOAD, HELPER_MAX_PAYLOAD * 2);

	if (r >= 0)
		r = helper_send_failed(&c, err);
	if (r >= 0)
		r = chan_flush_wait(&c, 1000);
	chan_done(&c);
	return r < 0 ? 2 : 1;
}

int gateway_program(void)
{
	struct gateway_config config = {.broker_fd = HELPER_FD_PEER};
	struct gateway *g = NULL;
	struct cloche_err err = {0};

	if (gateway_narrow_descriptors(&err) < 0)
		return report(&err);
	/* A copy, so that a failure can still be reported when the gateway has closed its own. */
	config.supervisor_fd = dup(HELPER_FD_SUPERVISOR);
	if (gateway_new(&config, &g, &err) < 0 ||
		gateway_narrow_limits(
			gateway_limits_default.connections + SPARE_DESCRIPTORS, &err) < 0 ||
		gateway_narrow_calls(&err) < 0 || gateway_run(g, &err) < 0)
		return report(&err);
	/* No clean-up: the kernel does it, and the room's connections end at once. */
	_exit(0);
}
