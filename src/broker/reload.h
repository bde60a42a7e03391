/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Another policy takes the place of the one that holds. */

struct broker;

/* A client has sent a socket (taken), over which a new policy comes. */
void reload_begin(struct broker *b, int fd);
/* The first policy is there: others may take its place. */
void reloads_start(struct broker *b);
void reloads_free(struct broker *b);
