/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Words for a person's ssh and for the login shell of the other machine. */

#include "base/buf.h"

/* Return whether ssh may be given this destination: HOST, USER@HOST, ssh://USER@HOST:PORT or a name
 * of ~/.ssh/config. Their commands (ProxyCommand, Match exec) get it as words of a shell, so it has
 * nothing that a shell or an option could be made of. */
bool remote_is_place(struct str place);

/* Add a command line that any login shell (of the Bourne family, csh, fish) understands and that
 * has sh run the script, with its standard input and output. Return 0 or as buf_add(). */
_warn_unused_ int remote_add_command(struct buf *out, struct str script);
