/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Language helpers: ownership by cleanup attributes, annotations, small arithmetic. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _warn_unused_ __attribute__((warn_unused_result))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _pure_ __attribute__((pure))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))
/* For what is rarely called and has large buffers: they would become the caller's. */
#define _noinline_ __attribute__((noinline))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Hand a pointer over: yield it and leave NULL behind. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *take_ = &(p);                                                       \
		__typeof__(p) taken_ = *take_;                                                     \
		*take_ = NULL;                                                                     \
		taken_;                                                                            \
	})

/* Hand a descriptor over: yield it and leave -1 behind. */
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int *take_ = &(fd);                                                                \
		int taken_ = *take_;                                                               \
		*take_ = -1;                                                                       \
		taken_;                                                                            \
	})

/* Define NAME##p, the cleanup function for a variable of type TYPE * whose destructor is NAME. */
#define DEFINE_CLEANUP(type, name)                                                                 \
	_unused_ static inline void name##p(type **p)                                              \
	{                                                                                          \
		if (*p)                                                                            \
			name(*p);                                                                  \
	}

/* Have room for one more in an array on the heap (or NULL) of *cap elements of this size, n of
 * which are used. Return the array, which may have moved; or NULL on lack of memory, then it is as
 * it was. */
static inline void *array_room(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 16;
	void *grown;

	if (n < *cap)
		return array;
	grown = reallocarray(array, more, size);
	if (grown)
		*cap = more;
	return grown;
}

static inline void freep(void *p)
{
	void **pp = p;
	free(*pp);
}
