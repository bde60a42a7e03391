/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The pod of a sandbox, as the cluster is told to make it. */

#include "asked/request.h"
#include "base/err.h"
#include "base/json.h"

#define PODSPEC_CONTAINER "room"
#define PODSPEC_IMAGE "docker.io/library/debian:stable-slim"
/* Labels by which the pods of a sandbox are found. */
#define PODSPEC_LABEL_SANDBOX "cloche.sandbox"
#define PODSPEC_LABEL_OWNER "cloche.owner"

enum { PODSPEC_NAME_MAX = 63 };

/* Write the pod's name: "agentgate-" and the sandbox's id. Fail if a pod cannot be called so. */
_warn_unused_ int podspec_name(
	const char *id, char ret[PODSPEC_NAME_MAX + 1], struct cloche_err *err);

/* Check what a person's template asks for, which may be nothing that the walls depend on. file: how
 * it is named in an error. */
_warn_unused_ int podspec_check_template(
	const json_t *template, const char *file, struct cloche_err *err);

/* Make the pod of a request, with what a checked template (NULL: none) adds to it. A new reference,
 * or NULL with err set. */
json_t *podspec_make(const struct request *r, const json_t *template, struct cloche_err *err);

/* Make the policy that denies the pod every connection. It goes with the pod of this uid. */
json_t *podspec_make_policy(const struct request *r, struct str uid, struct cloche_err *err);
