/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hostile text in YAML of ours: printable ASCII only, and nothing of it can end early. Each returns
 * 0 or negative errno. */

#include "base/buf.h"

/* Adds s (UTF-8) as a double-quoted scalar (YAML 1.1 section 5.6); -EINVAL if it is no UTF-8. */
_warn_unused_ int yaml_add_quoted(struct buf *out, struct str s);

/* The same, as a `path` pattern that matches s alone: in a pattern, each special byte becomes a
 * set. */
_warn_unused_ int yaml_add_path(struct buf *out, struct str s);

/* Adds s for a comment: what is not printable as %XX. */
_warn_unused_ int yaml_add_comment(struct buf *out, struct str s);
