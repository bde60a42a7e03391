/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the HTTP/1 parser. */

#include "http/h1.h"

/* Split a field line (without its line end) into name and trimmed value, views into it. */
enum h1_error h1_split_field(struct str line, struct str *ret_name, struct str *ret_value);

/* Parse the request line (status line) without its line end, which lies at the end of the head's
 * storage, and fills the head. */
enum h1_error h1_request_line(struct h1_parser *p, struct str line);
enum h1_error h1_status_line(struct h1_parser *p, struct str line);

/* All fields are there: judge them together, and derive framing and flags. */
enum h1_error h1_finish(struct h1_parser *p);
