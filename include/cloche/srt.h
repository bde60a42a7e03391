/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SRT_H
#define CLOCHE_SRT_H
/* Settings of Anthropic's sandbox-runtime (srt): the JSON file that it takes with --settings, as a
 * sandbox of cloche obeys it. What cloche cannot do as strictly as srt is told, what would let the
 * inside do more without a word is refused. Source of the format: sandbox-config.ts of
 * github.com/anthropics/sandbox-runtime. One thread at a time. */

#include <stdbool.h>

#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What has become of one entry of the file; borrowed during the call. */
typedef struct cloche_srt_rule {
	const char *key;   /* "filesystem.allowWrite" */
	const char *value; /* the entry, or "" */
	const char *here;  /* what it means in cloche */
	bool weaker;       /* it holds in part, or not at all */
} cloche_srt_rule;

/* Grants sb what the file allows and makes the working directory of the caller that of the inside,
 * at the same path. Paths of the file are relative to it; set no workspace besides. The file and
 * what it names are looked at now. CLOCHE_E_CONFIG if the file is wrong, or asks for what cannot
 * be had here, CLOCHE_E_DENIED if a symbolic link is on the way to what it allows; sb is then of
 * no use. A second file is CLOCHE_E_USAGE. */
CLOCHE_API int cloche_sandbox_load_srt_settings(
	cloche_sandbox *sb, const char *json_file, cloche_err *err);

/* Calls fn with every entry of the file; json_file NULL: ~/.srt-settings.json, as srt has it. */
CLOCHE_API int cloche_srt_explain(const char *json_file,
	void (*fn)(const cloche_srt_rule *rule, void *user), void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
