/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base record */
/* A log may be anybody's. What is read of it is an operation that may stand in a log, is the same
 * when it is written and read once more, and changes the tables or is refused. */
#include "base/fd.h"
#include "record/state.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_again(const struct state_op *op)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;

	require(state_op_check(op, NULL) == 0);
	require(state_op_write(&text, op) == 0);
	require(state_line_read(&line, str_prefix(buf_str(&text), buf_len(&text) - 1), NULL) == 0);
	require(line.op.kind == op->kind && line.op.mode == op->mode);
	require(line.op.is_ref == op->is_ref && line.op.is_new == op->is_new);
	require(str_eq(line.op.subject, op->subject) && str_eq(line.op.object, op->object));
	require(line.op.number == op->number && line.op.usec == op->usec);
}

static void check_unknown(const struct state_op *op)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;

	require(state_op_write(&text, op) == 0);
	require(state_line_read(&line, str_prefix(buf_str(&text), buf_len(&text) - 1), NULL) == 0);
	require(line.op.kind == STATE_UNKNOWN && str_eq(line.op.name, op->name));
	require(op->args ? json_equal(line.op.args, op->args) : !line.op.args);
}

static int take(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct state *s = user;

	if (op->kind == STATE_TABLES)
		return tables_read(s, op->args, err);
	if (op->kind == STATE_UNKNOWN) {
		check_unknown(op);
		return 0;
	}
	check_again(op);
	return state_apply(s, op, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state s;
	int fd = memfd_create("log", MFD_CLOEXEC);
	struct cloche_err err = CLOCHE_ERR_INIT;
	uint64_t torn = 0;
	int r;

	require(fd >= 0 && fd_write_all(fd, data, size) == 0);
	require(state_open(&s, fd, "none", false, NULL) < 0 || s.log.fd < 0);
	/* As a log of ours, or as a file from elsewhere. */
	r = oplog_read_file(fd, size % 2 ? &torn : NULL, take, &s, &err);
	require(r == 0 || err.message[0]);
	require(torn < size || torn == 0);
	require(s.env.bytes <= STATE_ENV_TOTAL && s.storage.bytes <= STATE_STORAGE_TOTAL);
	(void)state_close(&s, NULL);
	fd_close(fd);
	return 0;
}
