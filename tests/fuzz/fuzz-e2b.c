/* SPDX-License-Identifier: Apache-2.0 */
/* What a service says to the provider for e2b: the messages of a process, however they are cut, and
 * answers of its API. What comes out of them can stand in an address, in a line of a head and on a
 * terminal. fuzz-deps: provider_e2b */
#include "answer.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return a digest of the events, and how many there were. */
static uint64_t check_events(struct str all, size_t piece)
{
	struct answer_events e = ANSWER_EVENTS_INIT;
	enum answer_event event;
	uint64_t digest = 0;
	int r = 0;

	while (all.n && r == 0) {
		struct str part = str_prefix(all, piece);

		all = str_from_index(all, part.n);
		if (answer_events_feed(&e, part) < 0)
			break;
		while ((r = answer_events_next(&e, &event)) > 0) {
			digest = digest * 31 + (uint64_t)event + buf_len(&e.data);
			if (event == ANSWER_END && e.number > 255)
				abort();
			for (const char *c = e.text; *c; c++)
				if (*c < ' ' || *c > '~')
					abort();
		}
	}
	answer_events_donep(&e);
	return digest;
}

static int check_id(void *user, const char *id)
{
	if (!place_is_id(str_from(id)))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = str_make(data, size);
	char said[ANSWER_TEXT_MAX + 1];
	struct answer_sandbox s;

	if (size > ANSWER_MAX)
		return 0;
	if (check_events(all, size) != check_events(all, 7))
		abort();
	if (answer_read_sandbox(all, &s) == 0 &&
		(!place_is_id(str_from(s.id)) || !str_is_visible(str_from(s.token)) ||
			!str_is_visible(str_from(s.domain))))
		abort();
	(void)!answer_each_sandbox(all, "cloche.sandbox", "x", check_id, NULL);
	answer_message(all, said);
	return 0;
}
