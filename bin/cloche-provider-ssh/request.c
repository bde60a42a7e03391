/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"
#include "asked/asked.h"

#include <stdlib.h>

void request_done(struct request *r)
{
	free(r->place);
	free(r->script);
	*r = (struct request){0};
}

int request_take_line(struct request *r, struct str line, struct cloche_err *err)
{
	int e = asked_take(&r->begun, line, err);
	struct str key = str_next(&line, ' ');

	if (e != 2)
		return e;
	if (str_eq(key, STR("place")))
		return asked_set(&r->place, line, err);
	return str_eq(key, STR("far")) ? asked_set(&r->script, line, err) : 0;
}

static int request_take(void *user, struct str line, struct cloche_err *err)
{
	return request_take_line(user, line, err);
}

int request_read(struct request *r, int fd, struct cloche_err *err)
{
	return asked_read(fd, request_take, r, err);
}
