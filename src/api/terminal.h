/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The caller's terminal while a command in the room has one of its own. */

#include "client/client.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <termios.h>

struct terminal {
	bool open;
	int fd;
	struct termios saved;
};

/* Puts fd into raw mode and lets SIGWINCH wake the client. What is no terminal is left alone. */
void terminal_open(struct terminal *t, int fd, struct client *client);
/* Restores everything; fine if it was not opened. */
void terminal_close(struct terminal *t);
/* Passes the present size on. */
void terminal_resized(struct terminal *t, struct client *client);
/* The size of a terminal; 24 by 80 if it is not known. */
void terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
