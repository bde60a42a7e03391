/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Handles the caller's terminal while a command in the room has its own. */

#include "client/client.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <termios.h>

struct terminal {
	bool open;
	int fd;
	struct termios saved;
};

/* Put fd into raw mode and let SIGWINCH wake the client. Do nothing if fd is not a terminal. */
void terminal_open(struct terminal *t, int fd, struct client *client);
/* Restore everything. Do nothing if it was not opened. */
void terminal_close(struct terminal *t);
/* Pass on the current size. */
void terminal_resized(struct terminal *t, struct client *client);
/* Return the size of a terminal, or 24 by 80 if it is not known. */
void terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
