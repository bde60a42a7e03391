/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base agent */
/* An agent's output may be anything. It reads the same however it was cut into chunks; what was
 * parsed is written as JSON that reads back equal; answers and outcomes exist whatever came. */
#include "agent/lines.h"
#include "agent/outcome.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small, so that lines and events beyond it are tried as well. */
enum { LINE_MAX_BYTES = 4096, EVENTS_MAX_BYTES = 16384 };

struct reading {
	struct agent_transcript transcript;
	struct agent_markers markers;
};

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_text(const json_t *raw)
{
	struct buf text = BUF_INIT(SIZE_MAX / 2);
	json_t *again;

	require(json_text_write(&text, raw, 0) == 0);
	again = json_loadb(buf_data(&text), buf_len(&text), JSON_ALLOW_NUL, NULL);
	require(again && json_equal(raw, again));
	json_decref(again);
	buf_done(&text);
}

static int take(struct str line, void *data)
{
	struct reading *reading = data;
	struct agent_event *e = NULL;
	int r;

	require(line.n <= LINE_MAX_BYTES);
	agent_markers_scan(&reading->markers, line, false);
	r = agent_event_parse(line, &e, NULL);
	require(r == 0 || r == 1);
	if (r == 1)
		return 0;
	check_text(e->raw);
	require(e->size >= 1);
	require(agent_transcript_add(&reading->transcript, e, NULL) == 0);
	agent_event_free(e);
	return 0;
}

static void read_in_chunks(struct str input, size_t chunk, struct reading *ret)
{
	struct lines lines = LINES_INIT(LINE_MAX_BYTES);

	*ret = (struct reading){.markers.api_error_4 = false};
	require(agent_transcript_init(&ret->transcript, EVENTS_MAX_BYTES, NULL) == 0);
	for (; input.n > 0; input = str_from_index(input, chunk))
		require(lines_feed(&lines, str_prefix(input, chunk), take, ret) == 0);
	require(lines_end(&lines, take, ret) == 0);
	lines_done(&lines);
}

static void check_answers(const struct reading *reading)
{
	const struct agent_transcript *t = &reading->transcript;
	char *response = NULL, *summary = NULL;
	json_t *usage = NULL;

	require(agent_transcript_response(t, &response, NULL) == 0 && response && response[0]);
	require(agent_transcript_error_summary(t, &summary, NULL) == 0);
	usage = agent_usage(t->usage);
	require(json_object_size(usage) >= 4);
	require(t->kept <= EVENTS_MAX_BYTES && t->said.n <= AGENT_TEXTS_KEPT);
	require(t->duration_ms <= INT64_MAX && t->total_cost_usd >= 0);
	for (int bits = 0; bits < 16; bits++) {
		const struct agent_ending ending = {.exit_code = bits & 1,
			.timed_out = bits & 2,
			.cancelled = bits & 4,
			.oom_killed = bits & 8};
		enum agent_outcome outcome =
			agent_outcome_classify(&ending, t, &reading->markers, NULL);

		require(outcome != AGENT_SUCCESS || ending.exit_code == 0);
		require((outcome == AGENT_TIMEOUT) == ending.timed_out);
	}
	json_decref(usage);
	free(summary);
	free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading whole, cut;
	struct str input;

	if (size < 1)
		return 0;
	input = str_make(data + 1, size - 1);
	read_in_chunks(input, SIZE_MAX / 2, &whole);
	read_in_chunks(input, (size_t)data[0] + 1, &cut);
	require(json_equal(whole.transcript.events, cut.transcript.events));
	require(whole.markers.api_error_4 == cut.markers.api_error_4);
	check_answers(&whole);
	agent_transcript_done(&whole.transcript);
	agent_transcript_done(&cut.transcript);
	return 0;
}
