/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Internals of the translation of srt's settings (cloche/srt.h): srt.c reads the file and handles
 * network and credentials, srt_files.c handles the rules for files. */

#include "sandbox/sandbox.h"
#include <cloche/srt.h>

/* In the order in which the rules of one path are applied. */
enum srt_rule { SRT_ALLOW_READ, SRT_ALLOW_WRITE, SRT_DENY_WRITE, SRT_DENY_READ, SRT_RULES_END_ };

struct srt_place {
	char *path, *named; /* real path; as in the settings file */
	char *source;       /* absolute, links not resolved */
	enum srt_rule rule;
	bool is_there, is_dir;
	int fd;         /* O_PATH; -1: it is not there */
	struct stat st; /* of that */
	size_t mount;   /* what it became in the sandbox */
};

struct srt {
	cloche_sandbox *sb;
	void (*fn)(const cloche_srt_rule *rule, void *user); /* may be NULL */
	void *user;
	char *cwd, *home;         /* home may be NULL */
	char **allowed, **denied; /* domains (strv) */
	struct srt_place *places;
	size_t places_n;
	char **pinned; /* directories that are mounted so that they cannot be renamed (strv) */
};

void srt_tell(const struct srt *s, const char *key, const char *value, const char *here);
/* The same for a rule that has only a part of its effect, or none. */
void srt_tell_weaker(const struct srt *s, const char *key, const char *value, const char *here);

/* Add a path of a rule. */
_warn_unused_ int srt_files_add(
	struct srt *s, enum srt_rule rule, const char *named, struct cloche_err *err);
/* Add the mounts that all the rules together require. */
_warn_unused_ int srt_files_settle(struct srt *s, struct cloche_err *err);
void srt_files_done(struct srt *s);
