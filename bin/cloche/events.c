/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the run is one job, and reading the network log of its sandbox another,
 * which begins as soon as the sandbox is known and ends with it. Both print whole lines from this
 * thread. */
#include "events.h"
#include "base/utf8.h"
#include "json_out.h"
#include "refusals.h"

#include <stdlib.h>
#include <string.h>

static struct held {
	char bytes[4];
	size_t n;
} helds[2]; /* the front of a character of each stream */

/* Return how many bytes at the end are the front of a character. */
static size_t events_front(const char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)p[n - back];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if (c < 0x80 || c >= 0xc0)
			return whole > back ? back : 0;
	}
	return 0;
}

static bool events_print_output(bool is_stderr, const char *p, size_t n)
{
	return n == 0 || json_print_dense(json_pack("{s:s, s:s, s:o}", "type", "output", "stream",
				 is_stderr ? "stderr" : "stdout", "data", json_bytes(p, n)));
}

bool events_output(bool is_stderr, const void *data, size_t length)
{
	struct held *held = &helds[is_stderr];
	size_t n = held->n + length, front;
	char *all = malloc(n + 1);
	bool ok;

	if (!all)
		return false;
	memcpy(all, held->bytes, held->n);
	memcpy(all + held->n, data, length);
	front = events_front(all, n);
	held->n = front;
	memcpy(held->bytes, all + n - front, front);
	ok = events_print_output(is_stderr, all, n - front);
	free(all);
	return ok;
}

void events_network(const cloche_network_entry *entry, void *user)
{
	json_t *event = refusal_event(entry->json);

	if (event && !json_print_dense(event))
		cloche_run_stop(user);
}

bool events_result(json_t *document)
{
	static const char *const printed[] = {
		"stdout", "stderr", "stdout_truncated", "stderr_truncated"};
	json_t *line = json_pack("{s:s}", "type", "result");
	bool ok = document && line && json_object_update(line, document) == 0;

	for (int i = 0; i < 2 && ok; i++)
		ok = events_print_output(i == 1, helds[i].bytes, helds[i].n);
	for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]) && ok; i++)
		(void)json_object_del(line, printed[i]);
	json_decref(document);
	if (ok)
		return json_print_dense(line);
	json_decref(line);
	return false;
}
