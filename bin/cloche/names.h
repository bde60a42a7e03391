/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names from the inside: any bytes but NUL. */

#include <jansson.h>
#include <stddef.h>

/* Prints to standard output; what a terminal would obey, a line break and a backslash are written
 * as \xXX, so that one line is one name and can be turned back. */
void name_print(const char *p, size_t n);

/* Sets member key of an object; if the bytes are no UTF-8 it is an approximation, and the member
 * "KEY_hex" has them. */
void name_to_json(json_t *object, const char *key, const char *p, size_t n);
