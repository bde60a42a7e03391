/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the text is a JSON object with a member for each row of the table, as the
 * row's type puts it there (option_types.c). */
#include "sandbox/store.h"
#include "base/json.h"
#include "sandbox/options.h"

#include <errno.h>

static json_t *store_member(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return option_ops(o)->put ? option_ops(o)->put(sb, o) : json_null();
}

int sandbox_store(
	const cloche_sandbox *sb, char *const *secrets, struct buf *out, struct cloche_err *err)
{
	_cleanup_json_ json_t *all = json_object();
	const struct sandbox_option *o;
	int r;

	for (size_t i = 0; all && (o = option_row(i)); i++)
		if (o->key && json_object_set_new(all, o->key, store_member(sb, o)) < 0)
			return err_nomem(err);
	if (all && secrets && json_object_set_new(all, "secrets", store_texts(secrets)) < 0)
		return err_nomem(err);
	r = all ? json_text_write(out, all, JSON_TEXT_COMPACT) : -ENOMEM;
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "the options of the sandbox are too large");
	return r < 0 ? err_nomem(err) : 0;
}

int sandbox_load(struct str text, cloche_sandbox **ret, char ***ret_secrets, struct cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(strv_freep) char **secrets = NULL;
	_cleanup_json_ json_t *all = NULL;
	const struct sandbox_option *o;
	int r = sb ? json_text_read(text, 0, &all, NULL) : -ENOMEM;

	/* Members that only another version or only this one knows are left as they are. */
	for (size_t i = 0; r == 0 && (o = option_row(i)); i++) {
		const json_t *value = o->key ? json_object_get(all, o->key) : NULL;

		if (value && option_ops(o)->get)
			r = option_ops(o)->get(value, sb, o, &secrets);
	}
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -EPROTO)
		return err_set(err, E_UNSUPPORTED,
			"another version of cloche made the sandbox: its options cannot be read");
	if (r < 0)
		return err_set(err, E_CORRUPT,
			"the options that the sandbox was made with cannot be read");
	*ret = TAKE_PTR(sb);
	*ret_secrets = TAKE_PTR(secrets);
	return 0;
}
