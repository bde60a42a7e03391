/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Replace the policy while the sandbox runs. */

struct broker;

/* Read a new policy from fd, a socket that a client has sent. Takes fd. */
void reload_begin(struct broker *b, int fd);
/* The first policy is in force: read the ones that replace it. */
void reloads_start(struct broker *b);
void reloads_free(struct broker *b);
