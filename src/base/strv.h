/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Arrays of terminated strings that end with NULL, as execve takes them; all on the heap. NULL is
 * always a valid empty array. */

#include "base/err.h"
#include "base/str.h"

/* Free the strings and the array; return NULL. */
char **strv_free(char **v);
static inline void strv_freep(char ***v)
{
	*v = strv_free(*v);
}

size_t strv_count(char *const *v);
/* Return whether both hold the same strings in the same order. */
bool strv_eq(char *const *a, char *const *b);

/* Append a copy of s to *v. Return 0, or -ENOMEM with *v unchanged. */
_warn_unused_ int strv_add(char ***v, struct str s);
/* Append s itself and take it, even on failure. A NULL s counts as out of memory. */
_warn_unused_ int strv_take(char ***v, char *s);
/* Store a copy of the whole array in *ret. Return 0 or -ENOMEM. */
_warn_unused_ int strv_copy(char *const *v, char ***ret);

/* Replace the heap string *at by a copy of text (NULL for NULL). Return 0, or -E_NO_MEMORY with *at
 * unchanged. */
_warn_unused_ int set_string(char **at, const char *text, struct cloche_err *err);

/* For arrays of NAME=VALUE: set (or replace) or read an entry. strv_env_get returns a borrowed
 * value, or NULL if there is none. */
_warn_unused_ int strv_env_set(char ***v, const char *name, const char *value);
const char *strv_env_get(char *const *v, const char *name);
/* Remove an entry, if there is one. */
void strv_env_unset(char **v, const char *name);
