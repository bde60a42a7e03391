/* SPDX-License-Identifier: Apache-2.0 */
/* Follows what an agent prints, or reads what it printed: event [FILE], else standard input; FILE
 * may be the events.jsonl of an execution context. */
#include <cloche/event.h>
#include <stdio.h>
#include <unistd.h>

static void on_event(cloche_event *event, void *user)
{
	(void)user;
	if (cloche_event_tool_name(event)[0])
		printf("it uses %s\n", cloche_event_tool_name(event));
}

static int follow(cloche_event_stream *stream, cloche_err *err)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(0, piece, sizeof(piece))) > 0)
		if (cloche_event_stream_feed(stream, piece, (size_t)n, err) < 0)
			return -1;
	return cloche_event_stream_end(stream, err);
}

int main(int argc, char **argv)
{
	cloche_event_stream *stream = cloche_event_stream_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_event_result result;
	int r;

	if (!stream)
		return 1;
	cloche_event_stream_on_event(stream, on_event, NULL);
	r = argc > 1 ? cloche_event_stream_feed_file(stream, argv[1], &err) : follow(stream, &err);
	if (r == 0 && cloche_event_stream_result(stream, &result, &err) > 0)
		printf("%s: %llu turns, %.2f USD, %llu tokens read, %llu written\n%s\n",
			result.is_error ? "failed" : "done", (unsigned long long)result.num_turns,
			result.total_cost_usd, (unsigned long long)result.usage.input_tokens,
			(unsigned long long)result.usage.output_tokens,
			cloche_event_stream_response(stream));
	else
		fprintf(stderr, "%s\n", r < 0 ? err.message : "there is no result");
	cloche_event_stream_free(stream);
	return r < 0 ? 1 : 0;
}
