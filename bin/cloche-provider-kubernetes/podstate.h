/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the cluster says about a pod, in a sentence. All of it is hostile text. */

#include "base/buf.h"
#include "base/json.h"

enum podstate_kind {
	PODSTATE_WAITS,   /* it may run soon; why says what it waits for */
	PODSTATE_NOWHERE, /* no node takes it, at this moment */
	PODSTATE_RUNS,
	PODSTATE_ENDED, /* it does not run, and never will */
};

enum { PODSTATE_WHY_MAX = 400 };

struct podstate {
	enum podstate_kind kind;
	bool silent;                    /* it runs, but its node is not heard of */
	char why[PODSTATE_WHY_MAX + 1]; /* printable ASCII; "": nothing to say */
	const char *hint;               /* or NULL */
};

void podstate_read(const json_t *pod, struct podstate *ret);

/* The same of a pod whose container has started: if the cluster does not know that, the node has
 * not been heard of since. */
void podstate_read_started(const json_t *pod, struct podstate *ret);

/* Take the first whole JSON object off the front of b. Return false if there is none yet. *ret is
 * valid until b is written to. */
bool podstate_take(struct buf *b, struct str *ret);

/* Write text so that it can be shown: printable ASCII, without more than one space in a row. */
void podstate_show(struct str text, char *ret, size_t size);
