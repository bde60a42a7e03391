/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict parsing of what people write: the whole text must be consumed. All return 0 or -EINVAL
 * (malformed) or -ERANGE; ret is untouched on failure. */

#include "base/macro.h"
#include "base/str.h"
#include <stdint.h>

/* Decimal digits only: no sign, no space. */
_warn_unused_ int parse_u64(struct str s, uint64_t max, uint64_t *ret);
/* Hexadecimal digits only, at most 16. */
_warn_unused_ int parse_hex_u64(struct str s, uint64_t *ret);
/* "512", "512b", "64k", "512m", "2g", "1t" (case ignored, powers of 1024) in bytes; above 0. */
_warn_unused_ int parse_size(struct str s, uint64_t *ret_bytes);
/* "30" (seconds), "500ms", "1.5s", "5m", "2h", "1d" in microseconds; above 0. */
_warn_unused_ int parse_duration(struct str s, uint64_t *ret_usec);
/* "0.5", "2": thousandths of a cpu, from 10 (0.01) on. */
_warn_unused_ int parse_cpus(struct str s, uint64_t *ret_millicpus);
