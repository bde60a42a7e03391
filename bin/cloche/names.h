/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names from inside a sandbox: any bytes but NUL. */

#include <jansson.h>
#include <stddef.h>

/* Print a name to standard output. Terminal controls, line breaks and backslashes are written as
 * \xXX, so that each name is one line and can be decoded again. */
void name_print(const char *p, size_t n);

/* Set member key of an object. If the bytes are not UTF-8, it is an approximation, and the member
 * "KEY_hex" has the bytes. */
void name_to_json(json_t *object, const char *key, const char *p, size_t n);
