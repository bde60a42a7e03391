/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Arrays of terminated strings that end with NULL, as execve takes them; all on the heap. NULL is
 * the empty array everywhere. */

#include "base/err.h"
#include "base/str.h"

/* Frees strings and array; returns NULL. */
char **strv_free(char **v);
static inline void strv_freep(char ***v)
{
	*v = strv_free(*v);
}

size_t strv_count(char *const *v);

/* Appends a copy of s to *v. Returns 0 or -ENOMEM with *v unchanged. */
_warn_unused_ int strv_add(char ***v, struct str s);
/* Appends s itself, which it takes also on failure; NULL counts as out of memory. */
_warn_unused_ int strv_take(char ***v, char *s);
/* A copy of the whole array in *ret. Returns 0 or -ENOMEM. */
_warn_unused_ int strv_copy(char *const *v, char ***ret);

/* Replaces the heap string *at by a copy of text; NULL stays NULL. Returns 0 or -E_NO_MEMORY with
 * *at unchanged. */
_warn_unused_ int set_string(char **at, const char *text, struct cloche_err *err);

/* For arrays of NAME=VALUE: sets (replacing) or reads one. strv_env_get returns NULL if it is
 * not there; the value is borrowed. */
_warn_unused_ int strv_env_set(char ***v, const char *name, const char *value);
const char *strv_env_get(char *const *v, const char *name);
