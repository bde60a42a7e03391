/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Start the relay of a far room, and carriers for it by this provider's program, until the relay
 * ends. Descriptors: FARCTL_FD_INIT, FARCTL_FD, FARCTL_FD_END. Return the exit status. */
int keep_program(const char *name, const char *path);

/* Execute the provider's program so that it ends with the keeper, however that ends: whoever is at
 * the other end of it may not care that its input has ended. Return the exit status. */
int keep_lead(const char *path, const char *verb);
