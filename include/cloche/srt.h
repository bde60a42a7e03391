/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SRT_H
#define CLOCHE_SRT_H
/* Settings of Anthropic's sandbox-runtime (srt): reads the JSON file that srt takes with --settings
 * and applies it to a cloche sandbox. What cloche enforces less strictly than srt is reported; what
 * would silently allow more inside is refused. Source of the format: sandbox-config.ts of
 * github.com/anthropics/sandbox-runtime. One thread at a time. */

#include <stdbool.h>

#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How one entry of the file was applied; borrowed during the call. */
typedef struct cloche_srt_rule {
	const char *key;   /* "filesystem.allowWrite" */
	const char *value; /* the entry, or "" */
	const char *here;  /* its effect in cloche */
	bool weaker;       /* it applies only partly, or not at all */
} cloche_srt_rule;

/* Grant sb what the file allows, and make the caller's working directory the working directory
 * inside, at the same path. Paths in the file are relative to it. Do not also set a workspace. The
 * file and what it names are examined now. CLOCHE_E_CONFIG if the file is wrong or asks for
 * something that is not available here. CLOCHE_E_DENIED if a path that it allows leads through a
 * symbolic link. sb cannot be used after either. CLOCHE_E_USAGE for a second file. */
CLOCHE_API int cloche_sandbox_load_srt_settings(
	cloche_sandbox *sb, const char *json_file, cloche_err *err);

/* Call fn for every entry of the file. json_file NULL: ~/.srt-settings.json, as in srt. */
CLOCHE_API int cloche_srt_explain(const char *json_file,
	void (*fn)(const cloche_srt_rule *rule, void *user), void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
