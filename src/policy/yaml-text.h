/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Write hostile text into our YAML: the output is printable ASCII only, and the text cannot end its
 * scalar or comment early. Each function returns 0 or negative errno. */

#include "base/buf.h"

/* Add s (UTF-8) as a double-quoted scalar (YAML 1.1 section 5.6); -EINVAL if it is no UTF-8. */
_warn_unused_ int yaml_add_quoted(struct buf *out, struct str s);

/* The same, as a `path` pattern that matches only s: special bytes of a pattern become sets. */
_warn_unused_ int yaml_add_path(struct buf *out, struct str s);

/* The same, with a query behind a `?`. Both are decoded, and the path has no `?` of its own. */
_warn_unused_ int yaml_add_path_query(struct buf *out, struct str path, struct str query);

/* Add s for a comment, with bytes that are not printable as %XX. */
_warn_unused_ int yaml_add_comment(struct buf *out, struct str s);
