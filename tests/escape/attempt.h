/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the attempts share. Each is one program that tries to get out of its room, or to harm what
 * is outside, and says by its exit status what came of it; the runner does not take its word and
 * looks at what it tried to reach. The first comment of each names what it tries ("Tries:"), the
 * wall that stops it ("Wall:") and, if there is one behind it that --nested lays open, "Behind
 * it:": then the attempt is made a second time in a nested room. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { HELD = 0, ESCAPED = 1, BROKEN = 2, CANNOT_TRY = 77 };

static int attempt_escaped;

static inline void escaped(const char *what)
{
	printf("ESCAPED: %s\n", what);
	fflush(stdout);
	attempt_escaped = 1;
}

/* A call that has to fail. */
static inline void refused(const char *what, long r)
{
	if (r >= 0)
		escaped(what);
	else
		printf("held: %s: %s\n", what, strerror(errno));
	fflush(stdout);
}
#define REFUSED(call) refused(#call, (long)(call))

/* Nothing that is there may be had; what is not there cannot be tried. */
static inline void unreadable(const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n > 0) {
		text[n] = '\0';
		printf("%s\n", text);
		escaped(path);
	} else {
		printf("held: read %s: %s\n", path, n < 0 ? strerror(errno) : "nothing in it");
	}
	if (fd >= 0)
		close(fd);
}

static inline void unwritable(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1", 1) == 1)
		escaped(path);
	else
		printf("held: write %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* What the runner has put outside, by name; see there. */
static inline const char *canary(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "no %s\n", name);
		exit(BROKEN);
	}
	return value;
}

static inline int canary_number(const char *name)
{
	return (int)strtol(canary(name), NULL, 10);
}

static inline int verdict(void)
{
	return attempt_escaped ? ESCAPED : HELD;
}
