/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The pod of a sandbox, in the cluster. */

#include "asked/request.h"
#include "kubectl.h"

/* Make it at the place that the request names, which k is set to, and wait until it runs. */
_warn_unused_ int pod_make(struct kubectl *k, const struct request *q, struct cloche_err *err);
/* See whether it runs. *ret_gone: it never will again. */
_warn_unused_ int pod_look(
	const struct kubectl *k, const struct request *q, bool *ret_gone, struct cloche_err *err);
/* Become the stream to the script in it. Return only if that cannot be. */
int pod_become(const struct kubectl *k, const struct request *q, struct cloche_err *err);
/* Have it deleted. It is gone within seconds if its node is there. */
_warn_unused_ int pod_delete(
	const struct kubectl *k, const struct request *q, struct cloche_err *err);
