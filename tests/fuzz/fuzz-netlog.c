/* fuzz-deps: api */
/* SPDX-License-Identifier: Apache-2.0 */
/* A network log as a room may have written it: each entry can be shown, and whatever is proposed
 * for it is printable and loads. What has no line of a log is refused as such. */
#include "base/fd.h"
#include <cloche/allowlist.h>
#include <cloche/network_log.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printable(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((*p < 0x20 && *p != '\n') || *p > 0x7e)
			abort();
}

/* Whether there was a request in it. */
static bool show(const char *path)
{
	cloche_network_summary n;
	cloche_network_log *log = NULL;
	cloche_network_entry e;

	if (cloche_network_log_open(path, &log, NULL) < 0)
		abort();
	while (cloche_network_log_next(log, &e, NULL) > 0) {
		check_printable(e.line);
		check_printable(e.json);
		if (strchr(e.line, '\n') || strchr(e.json, '\n'))
			abort();
	}
	n = cloche_network_log_summary(log);
	cloche_network_log_close(log);
	return n.allowed + n.blocked + n.dns + n.errors > 0;
}

static void suggest(const char *path, bool has_requests, bool blocked_only)
{
	cloche_network_suggestion *s = NULL;
	cloche_allowlist *list = cloche_allowlist_new();
	cloche_err err = {0};
	const char *yaml;

	if (cloche_network_log_suggest(path, blocked_only, &s, &err) < 0) {
		if (has_requests || !strstr(err.message, "is not a network log"))
			abort();
		cloche_allowlist_free(list);
		return;
	}
	yaml = s->yaml;
	check_printable(yaml);
	check_printable(s->json);
	if (cloche_allowlist_add_text(list, "s", yaml, strlen(yaml), NULL) < 0)
		abort();
	cloche_network_suggestion_free(s);
	cloche_allowlist_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[32];
	bool has_requests;

	if (fd < 0 || fd_write_all(fd, (const char *)data, size) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	has_requests = show(path);
	suggest(path, has_requests, false);
	suggest(path, has_requests, true);
	close(fd);
	return 0;
}
