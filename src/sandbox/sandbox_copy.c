/* SPDX-License-Identifier: Apache-2.0 */
/* Copy and free, member by member, as the table says. */
#include "sandbox/options.h"

#include <errno.h>

cloche_sandbox *sandbox_copy(const cloche_sandbox *sb)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = calloc(1, sizeof(*copy));
	const struct sandbox_option *o;
	int r = copy ? 0 : -ENOMEM;

	if (copy)
		copy->root_fd = -1;
	for (size_t i = 0; r == 0 && (o = option_row(i)); i++)
		if (option_ops(o)->copy)
			r = option_ops(o)->copy(sb, copy, o);
	if (r == 0)
		return TAKE_PTR(copy);
	cloche_sandbox_free(TAKE_PTR(copy));
	errno = -r;
	return NULL;
}

void cloche_sandbox_free(cloche_sandbox *sb)
{
	const struct sandbox_option *o;

	if (!sb)
		return;
	sandbox_group_unref(sb->group);
	strv_free(sb->settled);
	for (size_t i = 0; (o = option_row(i)); i++)
		if (option_ops(o)->free)
			option_ops(o)->free(sb, o);
	free(sb);
}
