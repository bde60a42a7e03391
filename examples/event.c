/* SPDX-License-Identifier: Apache-2.0 */
/* Follows what an agent prints, or reads what it printed: event [FILE], else standard input; FILE
 * may be the events.jsonl of an execution context. */
#include <cloche/event.h>
#include <stdio.h>
#include <unistd.h>

static void on_event(cloche_event *event, void *user)
{
	(void)user;
	if (event->tool_name[0])
		printf("it uses %s\n", event->tool_name);
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
	cloche_event_stream *stream = cloche_event_stream_new(on_event, NULL);
	cloche_err err = CLOCHE_ERR_INIT;
	const cloche_event_summary *all;
	int r;

	if (!stream)
		return 1;
	r = argc > 1 ? cloche_event_stream_feed_file(stream, argv[1], &err) : follow(stream, &err);
	all = cloche_event_stream_summary(stream);
	if (r == 0 && all && all->result)
		printf("%s: %llu turns, %.2f USD, %llu tokens read, %llu written\n%s\n",
			all->result->is_error ? "failed" : "done",
			(unsigned long long)all->result->num_turns, all->result->total_cost_usd,
			(unsigned long long)all->result->usage.input_tokens,
			(unsigned long long)all->result->usage.output_tokens, all->response);
	else
		fprintf(stderr, "%s\n", r < 0 ? err.message : "there is no result");
	cloche_event_stream_free(stream);
	return r < 0 ? 1 : 0;
}
