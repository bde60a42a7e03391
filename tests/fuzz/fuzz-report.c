/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base agent record report */
/* A page of anybody's log has no markup but the program's own, and no character that is obeyed. An
 * input is a log and, after a line REQUESTS, requests: one entry a line, as `cloche log` prints
 * them. The bodies of a request are the bytes of its line. */
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "report/report.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

/* Contents beside the log are whatever the log says, too. */
static int open_content(cloche_oplog *user, struct str ref, struct cloche_err *err)
{
	int fd = ref.p[8] & 1 ? -1 : memfd_create("contents", MFD_CLOEXEC);

	if (fd < 0)
		return err_set(err, E_NOT_FOUND, "none");
	require(fd_write_all(fd, ref.p, ref.n) == 0);
	return fd;
}

#define REQUESTS STR("--- requests\n")

static bool give_request(const char *line, uint64_t number, cloche_request_fn fn, void *fn_user)
{
	_cleanup_json_ json_t *all = NULL;
	const json_t *args, *response;
	cloche_request q = {.number = number, .json = line};

	if (json_text_read(str_from(line), JSON_ALLOW_NUL, &all, NULL) < 0)
		return true;
	args = json_object_get(all, "args");
	response = json_object_get(args, "response");
	q.time_us = json_count_at(all, "t");
	q.ended_us = json_count_at(args, "ended");
	q.method = json_string_value(json_object_get(args, "method"));
	q.url = json_string_value(json_object_get(args, "url"));
	q.refused = json_string_value(json_object_get(args, "refused"));
	q.status = (unsigned)json_count_at(response, "status");
	q.upgraded = json_is_true(json_object_get(args, "upgraded"));
	q.request_bytes = json_count_at(args, "bytes");
	q.response_bytes = json_count_at(response, "bytes");
	q.request_is_whole = json_is_true(json_object_get(args, "whole"));
	q.response_is_whole = json_is_true(json_object_get(response, "whole"));
	return !q.method || !q.url || fn(&q, fn_user);
}

static int read_requests(cloche_oplog *user, uint64_t after, cloche_request_fn fn, void *fn_user,
	struct cloche_err *err)
{
	struct str rest = *(const struct str *)(const void *)user;
	bool more = true;

	for (uint64_t number = 1; more && rest.n; number++) {
		_cleanup_(freep) char *line = str_dup(str_next_line(&rest));

		require(line);
		if (number > after)
			more = give_request(line, number, fn, fn_user);
	}
	return 0;
}

static int read_body(cloche_oplog *user, uint64_t number, enum cloche_body which, cloche_body_fn fn,
	void *fn_user, struct cloche_err *err)
{
	enum { PIECE = 500 };
	struct str rest = *(const struct str *)(const void *)user, line = STR_NULL;
	bool more = true;

	for (uint64_t at = 0; at < number; at++)
		line = str_next_line(&rest);
	for (; more && line.n; line = str_from_index(line, MIN(line.n, (size_t)PIECE)))
		more = fn(line.p, MIN(line.n, (size_t)PIECE), fn_user);
	return 0;
}

static bool is_own(struct str s)
{
	static const char *const tags[] = {"<section>", "</section>", "<details class=\"e ",
		"</details>", "<div class=\"e ", "<div class=say>", "</div>", "<summary>",
		"</summary>", "<time>", "</time>", "<b>", "</b>", "<code>", "</code>", "<small>",
		"<small class=r>", "</small>", "<pre>", "<pre class=d>", "</pre>", "<p>",
		"<p class=k>", "</p>", "<i>", "</i>", "<u>", "</u>", "<em>", "</em>", "<ins>",
		"</ins>", "<del>", "</del>", "<ol>", "</ol>", "<li>", "</li>", "</main>"};

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (str_starts(s, str_from(tags[i])))
			return true;
	return false;
}

static void check_rows(struct str page)
{
	size_t at = str_find(page, STR("<main>\n")) + 7, end = str_find(page, STR("</main>"));

	require(end < page.n);
	while (at < end) {
		struct str rest = str_from_index(page, at);
		uint32_t c = 0;
		size_t n = utf8_decode(rest, &c);

		require(n > 0 && (c != '<' || is_own(rest)));
		require(c >= 0x20 || c == '\n' || c == '\t');
		require(c < 0x2028 || c > 0x202e);
		at += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int log = memfd_create("log", MFD_CLOEXEC), out = memfd_create("page", MFD_CLOEXEC);
	struct str input = str_make((const char *)data, size);
	size_t at = str_find(input, REQUESTS);
	struct str requests = str_from_index(input, MIN(at + REQUESTS.n, size));
	struct report_source source = {.log = log,
		.id = "",
		.user = (cloche_oplog *)(void *)&requests,
		.open = open_content,
		.requests = read_requests,
		.body = read_body};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct stat st;
	int r;

	require(log >= 0 && out >= 0 && fd_write_all(log, data, at) == 0);
	r = report_write(&source, out, &err);
	require(r == 0 || err.message[0]);
	require(fstat(out, &st) == 0);
	if (r == 0) {
		size_t n = (size_t)st.st_size;
		char *page = mmap(NULL, n, PROT_READ, MAP_PRIVATE, out, 0);

		require(page != MAP_FAILED);
		check_rows(str_make(page, n));
		munmap(page, n);
	}
	fd_close(log);
	fd_close(out);
	return 0;
}
