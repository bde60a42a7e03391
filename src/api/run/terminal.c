/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run/run.h"
#include "base/strv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TERMINAL_STOPS = 64, TERMINAL_VARIABLE = 256 /* bytes that one of them has at most */ };

/* A process has one controlling terminal, so it needs only one of these. */
static _Atomic(struct client *) winch_client;
static struct sigaction winch_saved;

static void on_winch(int signo)
{
	struct client *client = atomic_load(&winch_client);

	if (client)
		client_wake(client);
}

void terminal_open(struct terminal *t, int fd, struct client *client)
{
	struct termios raw;
	struct sigaction sa = {.sa_handler = on_winch, .sa_flags = SA_RESTART};

	if (tcgetattr(fd, &t->saved) < 0)
		return;
	raw = t->saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
		return;
	t->open = true;
	t->fd = fd;
	atomic_store(&winch_client, client);
	sigaction(SIGWINCH, &sa, &winch_saved);
}

void terminal_close(struct terminal *t)
{
	if (!t->open)
		return;
	t->open = false;
	sigaction(SIGWINCH, &winch_saved, NULL);
	atomic_store(&winch_client, NULL);
	(void)tcsetattr(t->fd, TCSADRAIN, &t->saved);
}

/* In the background (after bg) stop again, as every program does that wants the terminal. A process
 * group that nobody could continue is not stopped at all: then go on. */
void terminal_suspend(struct terminal *t, struct client *client, const atomic_uint *told_to_end)
{
	int fd = t->fd;

	if (!t->open)
		return;
	terminal_close(t);
	for (int i = 0; i < TERMINAL_STOPS; i++) {
		(void)kill(0, SIGTSTP);
		if (atomic_load(told_to_end) || tcgetpgrp(fd) == getpgrp())
			break;
	}
	if (!atomic_load(told_to_end))
		terminal_open(t, fd, client);
}

int terminal_variables(char ***ret)
{
	static const char *const named[] = {"COLORTERM=", "TZ=", "LANG=", "LANGUAGE=", "LC_"};
	_cleanup_(strv_freep) char **v = NULL;

	for (char **e = environ; e && *e; e++)
		for (size_t i = 0; i < ARRAY_SIZE(named); i++)
			if (strncmp(*e, named[i], strlen(named[i])) == 0 && strchr(*e, '=') &&
				strchr(*e, '=')[1] && strlen(*e) < TERMINAL_VARIABLE &&
				strv_add(&v, str_from(*e)) < 0)
				return -ENOMEM;
	*ret = TAKE_PTR(v);
	return 0;
}

void terminal_resized(struct terminal *t, struct client *client)
{
	uint16_t rows, cols;

	if (!t->open)
		return;
	terminal_size(t->fd, &rows, &cols);
	(void)client_resize(client, rows, cols);
}

void terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize ws;

	*ret_rows = 24;
	*ret_cols = 80;
	if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0) {
		*ret_rows = ws.ws_row;
		*ret_cols = ws.ws_col;
	}
}
