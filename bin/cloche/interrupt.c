/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static interrupt_fn handler;
static void *handler_user;
static atomic_uint count;
static atomic_int last;

static void on_signal(int signal_number)
{
	int saved = errno;

	atomic_store(&last, signal_number);
	handler(handler_user, signal_number, atomic_fetch_add(&count, 1) + 1);
	errno = saved;
}

void interrupt_catch(interrupt_fn fn, void *user)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	handler = fn;
	handler_user = user;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;

		/* The parent, for example nohup, wants the signal to be ignored. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &sa, NULL);
	}
}

int interrupt_signal(void)
{
	return atomic_load(&last);
}
