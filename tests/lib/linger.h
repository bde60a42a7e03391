/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A socket whose close() waits for longer than any test: more is unsent than its other end, which
 * nobody reads, will take. */

enum { LINGER_SECONDS = 3600, LINGER_PATIENCE = 30 };

int linger_socket(void);
