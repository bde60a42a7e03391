/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The page of a log whose run goes on, through a port of this machine. */

#include "cli.h"

#include <stdint.h>

/* Serve the page of the log `name` on a port of 127.0.0.1 (0: any free one) until a signal ends us.
 * Print the address first, with json as {"url"}. Return only if it fails. */
int log_live(const char *name, uint16_t port, bool json, cloche_err *err);
