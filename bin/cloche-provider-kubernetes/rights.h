/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a person may do in the cluster. */

#include "kubectl.h"

/* Fail if something is missing that rooms need. Say the server's version, and what is not known, as
 * lines of an answer. */
_warn_unused_ int rights_check(struct kubectl *k, struct cloche_err *err);
