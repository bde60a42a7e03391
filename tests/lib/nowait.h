/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unit tests of jobs link with nowait_link_args (meson.build), which put functions of ours in the
 * place of those with which a process waits. In a job none of them may wait. */

/* How often a job has kept its thread waiting. */
extern int nowait_waits;
