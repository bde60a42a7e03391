/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tries to break INV-NARROW: a child behind a program's own filter makes a call. What is the same
 * for the gateway and its broker is here, too. */

#include "base/err.h"

enum outcome { PASSES, REFUSED, KILLED, OTHER };

/* Put the filter in place; set by main(). */
extern int (*narrowed_by)(struct cloche_err *err);

/* What comes of a call behind the filter. Arguments are such that it does no harm if it passes.
 */
enum outcome attempt(long nr, long a, long b, long c, long d);

/* Tests for run_test(). */
void runs_no_new_code(void);
void signals_nobody(void);
