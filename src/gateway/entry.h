/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The first stages of a connection: find out what it speaks, end its TLS, and hand it to the stage
 * for its protocol. */

#include "gateway/conn.h"

void entry_start(struct conn *c);
/* What c->leaf stood for has come (c->leaf is NULL by now), or was refused (NULL). */
void entry_leaf_ready(struct conn *c, const struct leaf *leaf);
