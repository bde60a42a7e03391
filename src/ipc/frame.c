/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/frame.h"

#include <errno.h>

int frame_end(struct frame_out *f, const int *fds, unsigned fds_n)
{
	if (!f->w.b)
		return -ENOBUFS;
	if (f->w.error < 0) {
		chan_abort(f->c, f->mark);
		return f->w.error;
	}
	return chan_end(f->c, f->mark, fds, fds_n);
}
