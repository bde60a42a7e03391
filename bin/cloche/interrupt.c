/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(interrupt_fn) handler;
static void *handler_user;
static atomic_uint count;
static atomic_int last;

static void interrupt_on_signal(int signal_number)
{
	interrupt_fn fn = atomic_load(&handler);
	int saved = errno;

	atomic_store(&last, signal_number);
	if (!fn)
		_exit(128 + signal_number);
	fn(handler_user, signal_number, atomic_fetch_add(&count, 1) + 1);
	errno = saved;
}

void interrupt_catch(interrupt_fn fn, void *user)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction sa = {.sa_handler = interrupt_on_signal, .sa_flags = SA_RESTART};

	handler_user = user;
	atomic_store(&handler, fn);
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;

		/* The parent, for example nohup, wants the signal to be ignored. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &sa, NULL);
	}
}

void interrupt_forget(void)
{
	atomic_store(&handler, NULL);
}

int interrupt_signal(void)
{
	return atomic_load(&last);
}
