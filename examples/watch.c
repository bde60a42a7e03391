/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what a sandbox asks for, until it ends: watch ID HOST. What is of that host may go out,
 * and nothing else. */
#include <cloche/watch.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	cloche_instance *sandbox = NULL;
	cloche_watch *watch = NULL;
	const cloche_question *q;
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: watch ID HOST\n");
		return 2;
	}
	r = cloche_instance_open(argv[1], &sandbox, &err);
	if (r == 0)
		r = cloche_watch_new(sandbox, &watch, &err);
	cloche_instance_free(sandbox);
	while (r == 0) {
		struct pollfd p = {.fd = cloche_watch_fd(watch), .events = POLLIN};

		(void)poll(&p, 1, -1);
		while ((r = cloche_watch_next(watch, &q, &err)) > 0) {
			bool good = !q->withdrawn && strcmp(q->always, argv[2]) == 0;

			if (q->withdrawn)
				continue;
			printf("%s: %s %s\n", good ? "allowed" : "refused", q->method, q->url);
			r = cloche_watch_answer(watch, q->number,
				good ? CLOCHE_ANSWER_ALWAYS : CLOCHE_ANSWER_NO, &err);
			if (r < 0)
				break;
		}
	}
	cloche_watch_free(watch);
	if (r != -CLOCHE_E_BROKEN)
		fprintf(stderr, "%s\n", err.message);
	return r == -CLOCHE_E_BROKEN ? 0 : 1;
}
