/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "api/task/event.h"
#include "base/fd.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>

enum { PIECE = 64 << 10 };

struct cloche_event_stream {
	struct lines lines;
	struct agent_transcript said;
	uint64_t events, skipped;
	cloche_event_fn on_event;
	void *on_event_user;
	char *extra, *response;
	cloche_event_result result;
	cloche_event_summary summary;
	struct cloche_err *err; /* of the call under way */
};

cloche_event_stream *cloche_event_stream_new(cloche_event_fn fn, void *user)
{
	cloche_event_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->on_event = fn;
	stream->on_event_user = user;
	stream->lines = LINES_INIT(LINES_MAX_DEFAULT);
	if (agent_transcript_init(&stream->said, 0, NULL) == 0)
		return stream;
	cloche_event_stream_free(stream);
	return NULL;
}

void cloche_event_stream_free(cloche_event_stream *stream)
{
	if (!stream)
		return;
	lines_done(&stream->lines);
	agent_transcript_done(&stream->said);
	free(stream->extra);
	free(stream->response);
	free(stream);
}

JOB_TELL1(tell_stream, cloche_event_fn, cloche_event *)

static int event_stream_take(struct str line, void *data)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	_cleanup_(cloche_event_freep) cloche_event *event = NULL;
	cloche_event_stream *stream = data;
	int r = agent_event_parse(line, &e, stream->err);

	if (r > 0) {
		stream->skipped += str_trim(line).n > 0;
		return 0;
	}
	if (r == 0)
		r = agent_transcript_add(&stream->said, e, stream->err);
	if (r < 0)
		return r;
	stream->events++;
	if (!stream->on_event)
		return 0;
	r = event_new(e, &event, stream->err);
	if (r == 0)
		tell_stream(stream->on_event, event, stream->on_event_user);
	return r;
}

int cloche_event_stream_feed(
	cloche_event_stream *stream, const void *data, size_t length, cloche_err *err)
{
	int r;

	stream->err = err;
	r = lines_feed(&stream->lines, str_make(data, length), event_stream_take, stream);
	return r < 0 ? err_nomem(err) : 0;
}

int cloche_event_stream_end(cloche_event_stream *stream, cloche_err *err)
{
	stream->err = err;
	return lines_end(&stream->lines, event_stream_take, stream) < 0 ? err_nomem(err) : 0;
}

int cloche_event_stream_feed_file(cloche_event_stream *stream, const char *path, cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_(freep) char *piece = malloc(PIECE);
	ssize_t n;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "events %s", path);
	if (!piece)
		return err_nomem(err);
	while ((n = job_read(fd, piece, PIECE)) != 0) {
		if (n < 0)
			return err_sys(err, (int)-n, "events %s", path);
		r = cloche_event_stream_feed(stream, piece, (size_t)n, err);
		if (r < 0)
			return r;
	}
	return cloche_event_stream_end(stream, err);
}

const cloche_event_summary *cloche_event_stream_summary(cloche_event_stream *stream)
{
	const struct agent_transcript *said = &stream->said;
	cloche_event_usage usage;

	free(stream->response);
	stream->response = NULL;
	if (agent_transcript_response(said, &stream->response, NULL) < 0 ||
		event_usage(said, &stream->extra, &usage, NULL) < 0)
		return NULL;
	stream->result = event_result(said, &usage);
	stream->summary = (cloche_event_summary){.size = sizeof(stream->summary),
		.events = stream->events,
		.skipped = stream->skipped + stream->lines.dropped,
		.session_id = agent_transcript_session_id(said),
		.result = said->results > 0 ? &stream->result : NULL,
		.response = stream->response};
	return &stream->summary;
}
