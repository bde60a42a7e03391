/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files of a project that cloche looks for by itself: sandbox.yaml and, beside it,
 * network-allowlist.yaml, in .cloche or else in .airut of one directory. In .airut, airut.yaml
 * counts where there is no sandbox.yaml. They are only proposals of their author. */

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define FOUND_ALLOWLIST "network-allowlist.yaml"

struct found {
	int fd;            /* of the directory (O_PATH) */
	char *dir;         /* its real path */
	const char *place; /* ".cloche" or ".airut" */
	const char *name;  /* of the file in it whose text is config */
	bool has_allowlist;
	struct buf config, allowlist;
	char hash[SHA256_HEX_MAX]; /* of the place and of the bytes of both */
};

/* Read the files of the directory dirfd (O_PATH, borrowed), each once and by descriptor, so that
 * the text in ret is that of the files that were checked. dir is its name in messages. Return 1, or
 * 0 if there are none. -E_DENIED if a file or directory is a link, does not belong to the caller or
 * can be written by others. The caller has to free ret after 1. */
_warn_unused_ int found_open(int dirfd, const char *dir, struct found *ret, struct cloche_err *err);
void found_done(struct found *f);
