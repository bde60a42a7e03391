/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Commands of git over ssh: what the gateway may ask for, and the origin's end of the leg
 * (ipc/sshleg.h), which takes the place of the connection that was dialled. */

#include "base/buf.h"
#include "tls/client.h"

struct net_open;
struct stream;
struct upstream;

/* Return whether the OPEN has what one of SSH has, and nothing else; its fields come later. */
bool ssh_is_open(const struct net_open *m);
/* Return whether the fields of s are those of SSH, with values that ssh.c would send. */
bool ssh_has_fields(const struct stream *s);
/* Return the value of a field, or an empty one. */
struct str ssh_field(const struct stream *s, struct str name);

/* Hand u->fd to a cloche-ssh, and put the socket to it there. Return 0 or -errno. */
_warn_unused_ int ssh_upstream_start(struct upstream *u);
/* Read its answer. Return TLS_IO_OK if bytes may flow, TLS_IO_READ if more is needed, else
 * TLS_IO_FAILED with the reason in why. */
enum tls_io ssh_upstream_answer(struct upstream *u, char *why, size_t why_size);
