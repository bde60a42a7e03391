/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The stream of a far room: standard input and output here, a WebSocket there. */

#include "exchange.h"

/* Carry bytes until either side ends. Return 0 if that was said, or negative. */
_warn_unused_ int carry_run(struct service *s, struct cloche_err *err);
