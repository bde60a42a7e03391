/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lets directories have the set-group-id bit in a room whose files stay on the host. */

#include <poll.h>
#include <stddef.h>

/* In a process before it executes its command: if the room's filter refuses the set-user-id bit,
 * install a filter that hands each request for the set-group-id bit to init. Return 0 with its
 * listener, which is -1 if there is nothing to serve, or -errno. This makes only system calls. */
int setgid_install(int *ret_listener);

/* The listeners of all processes that were started. */
struct setgid {
	int *fds;
	size_t n;
};

/* Take over a listener. Without memory for it, it is closed, and its requests fail with ENOSYS. */
void setgid_add(struct setgid *s, int fd);
/* Write what to poll for, s->n of them. */
void setgid_poll(const struct setgid *s, struct pollfd *polls);
/* Answer the requests that these have, and close the listeners that nobody uses any more. */
void setgid_serve(struct setgid *s, const struct pollfd *polls);
