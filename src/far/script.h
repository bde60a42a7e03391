/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a script (far/room.h) says, and the answer. The first line that counts is "cloche-far have",
 * or "cloche-far need MACHINE": then so many bytes of the program for that machine follow. */

#include "base/err.h"

#define SCRIPT_HAVE "cloche-far have"
#define SCRIPT_NEED "cloche-far need "
#define SCRIPT_LACKS "cloche-far lacks "

/* The machines that there may be a program for, by the names that uname -m gives. */
#define SCRIPT_MACHINES(F) F("x86_64") F("aarch64")

/* Open the program for a machine. Return a descriptor, or negative: there is none here. */
int script_open_program(const char *machine, struct cloche_err *err);
