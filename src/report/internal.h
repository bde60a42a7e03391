/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of a report. The log is read three times: first it is summed up (survey.c),
 * then what it says of files is compared with what was there before (summary.c), and then each
 * entry is drawn (the other files), so that memory holds only numbers, names, and the texts of
 * files that change. */

#include "agent/transcript.h"
#include "record/tree.h"
#include "report/content.h"
#include "report/html.h"

enum {
	REPORT_PIECE = 16 << 10, /* bytes of a text that are shown from its beginning and its end */
	REPORT_TEXTS = 24 << 20, /* of all texts together */
	REPORT_KEPT = 64 << 20,  /* of contents of files, to compare them with later ones */
	REPORT_MAX_COMMANDS = 1000 * 1000,
	REPORT_MAX_DIFF = 1 << 20,     /* bytes of a file that can be compared */
	REPORT_ROWS = 100,             /* of one section of the page */
	REPORT_MAX_TIMED = 100 * 1000, /* changes of files that are drawn at their time */
	REPORT_NAMES = 1000,           /* of files that were there from the start */
	REPORT_REFUSALS = 10,          /* that the top of the page names */
};

/* The change of a file. */
struct timed {
	uint64_t usec, offset; /* when, and where its entry is in the log */
	uint64_t removal;      /* the entry by which what was there is removed; 0: none */
};

/* Removals in the log, which have no time. */
struct removals {
	/* Those of one path that nothing has followed yet. */
	uint64_t exec, last[2];
	unsigned n;
	char *path;
	/* Those that are drawn with what has replaced the thing, in the order of the log. */
	uint64_t *replaced;
	size_t replaced_n, room, next; /* next: the first that was not passed */
};

/* A command, by its number in the log. */
struct command {
	UT_hash_handle hh;
	uint64_t number;
	uint64_t end_at; /* start of the line of its end */
	bool has_end, is_agent;
	bool is_timed; /* its changes were drawn with it, up to last_change */
	struct timed *changes;
	size_t changes_n, changes_room;
	uint64_t last_change; /* the entry of the last of them */
	bool is_drawn;        /* its end was drawn together with its start */
};

/* What the network refused, in one line. */
struct refusal {
	char *what, *why;
	uint64_t times;
};

struct survey {
	uint64_t start_usec, end_usec; /* of the recorded time; 0: not known */
	uint64_t operations, commands, failed, changed_files;
	bool has_there;     /* there are commands, so files before the first one were there from the
			     * start */
	uint64_t own_files; /* changes of the agent's own state */
	uint64_t requests, refused;
	uint64_t telemetry; /* requests by which a program tells of itself; they are not in refused
			     */
	struct refusal refusals[REPORT_REFUSALS];
	size_t refusals_n;
	char *command;                  /* the first, shortened */
	char *name, *provider, *reason; /* of the sandbox */
	char *prompt, *answer;          /* of the last agent that had one; NULL: none */
	char **mounts;                  /* that the run could write to (strv); NULL: not known */
	/* of agents: sums over their commands */
	char *driver, *model, *outcome;
	bool has_agent, has_cost;
	uint64_t turns;
	double cost_usd;
};

struct report {
	const struct report_source *source;
	struct html html;
	struct survey survey;
	struct command *commands;
	size_t timed; /* changes of all commands */
	struct removals removals;
	uint64_t offset;     /* of the entry that is drawn */
	struct tree files;   /* as they are at the entry that is drawn */
	struct tree changed; /* names of files that change; marked */
	uint64_t work;       /* lines that may still be compared */
	uint64_t texts;      /* bytes that may still be shown */
	unsigned rows;       /* in the open section */
	bool in_section;
	bool opens;     /* diffs on top are open */
	bool is_on_top; /* what is drawn stands above the rows, and is no row */
	uint64_t request_after, request_usec; /* last drawn request; time of the next */
	bool has_begun;                       /* the first command was drawn */
	uint64_t there;                       /* files that were there from the start */
	struct buf there_names;
};

/* --- survey.c --- */
_warn_unused_ int survey_make(struct report *r, struct cloche_err *err);
void survey_done(struct report *r);
struct command *command_find(struct report *r, uint64_t number, bool make);
/* Read one line of the log again. Return 1 if it is not there. */
_warn_unused_ int report_read_line(
	const struct report *r, uint64_t at, struct state_line *ret, struct cloche_err *err);
/* Whether a command ended successfully. */
bool command_is_well(const json_t *end);
/* Whether the output begins like an agent's. */
bool content_is_stream(struct content *stdout_text);
/* Call fn with each line of c. */
_warn_unused_ int content_each_line(
	struct content *c, int (*fn)(struct str line, void *user), void *user);

/* Whether a path is an agent's own state, or the system's: it is in no directory of the person's.
 */
bool report_is_own(const struct report *r, struct str path);
/* Whether a program tells its maker about itself by this request. */
bool report_is_telemetry(const cloche_request *request);

/* --- summary.c --- */
int summary_draw(struct report *r, struct cloche_err *err);

/* --- timeline.c --- */
struct timeline {
	struct report *r;
	struct command *c;
	const json_t *times; /* when it printed what; NULL: not known */
	size_t mark;         /* in them */
	size_t next;         /* of its changes that is not drawn */
	uint64_t end_usec;
};
/* The first reading: note when the file was changed. */
void timeline_note(struct report *r, const struct state_op *op, uint64_t offset);
/* Begin with what happened during a command. end: its arguments, borrowed. */
void timeline_begin(struct timeline *t, struct report *r, struct command *c, const json_t *end);
/* When the byte of standard output came; 0: not known. Ever later bytes are asked for. */
uint64_t timeline_at(struct timeline *t, uint64_t bytes);
/* Draw the changes up to this time, and the requests up to it or the command's end. */
_warn_unused_ int timeline_until(struct timeline *t, uint64_t usec, struct cloche_err *err);
/* Whether the entry was drawn at its time. */
bool timeline_has(struct report *r, const struct state_op *op, uint64_t offset);

/* --- page.c: everything around the rows --- */
int page_begin(struct report *r, struct cloche_err *err);
void page_end(struct report *r);

/* --- row.c --- */
/* ROW_OWN: an agent's own state and telemetry, hidden at first. */
enum row_kind { ROW_AGENT, ROW_COMMAND, ROW_FILE, ROW_NETWORK, ROW_OTHER, ROW_OWN };
/* Begin a row for an entry of that time (0: not shown). Its head follows until row_body(), or, for
 * a plain row, until row_end_plain(). is_open: the body is visible at once. */
void row_begin(struct report *r, enum row_kind kind, bool is_bad, bool is_open, uint64_t usec);
void row_begin_plain(struct report *r, enum row_kind kind, uint64_t usec);
void row_body(struct report *r);
void row_end(struct report *r);
void row_end_plain(struct report *r);
void rows_end(struct report *r);
void draw_duration(struct html *h, uint64_t usec);
void draw_size(struct html *h, uint64_t bytes);
void draw_money(struct html *h, double usd);
/* Draw a command's number behind something else. */
void draw_exec(struct html *h, uint64_t number);
/* Draw how many bytes are missing at this place of a <pre>. */
void draw_left_out(struct html *h, uint64_t n);
/* Return how much of a text of n bytes may be shown, and count it as shown. */
size_t report_take(struct report *r, size_t n);
/* Return at most n bytes of s, without cutting a character. */
struct str text_prefix(struct str s, size_t n);
/* Draw in a <pre>: the beginning and the end, and how much is left out between them. */
void draw_text(struct report *r, struct str text);
/* Draw a JSON value as text of several lines. */
void draw_json(struct report *r, const json_t *value);

/* --- the rows of entries --- */
/* Draw how a file differs between two trees; NULL: it is not there. only_mode: its contents do not.
 */
int draw_difference(struct report *r, struct str path, const struct tree_node *was,
	const struct tree_node *is, bool only_mode, bool is_open, struct cloche_err *err);
int draw_operation(struct report *r, const struct state_op *op, struct cloche_err *err);
int draw_change(struct report *r, const struct state_op *op, struct cloche_err *err);
void draw_there(struct report *r);
int draw_command(struct report *r, const struct state_op *op, struct cloche_err *err);
int draw_call(struct report *r, const struct state_op *op, struct cloche_err *err);
int draw_turns(
	struct report *r, struct content *stdout_text, struct timeline *t, struct cloche_err *err);
/* Draw the requests before this time. */
int draw_requests(struct report *r, uint64_t until_usec, struct cloche_err *err);
