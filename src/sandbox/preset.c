/* SPDX-License-Identifier: Apache-2.0 */
/* Presets: allowlists by name (fs/shipped.h). */
#include "base/strv.h"
#include "fs/shipped.h"
#include "sandbox/allowlist.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct shipped_text sandbox_presets[]; /* of presets/, by the build */
static const struct shipped presets = {"preset", "presets", sandbox_presets};

int cloche_allowlist_add_preset(cloche_allowlist *list, const char *name, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ALLOWLIST_MAX_TEXT);
	_cleanup_(freep) char *file = NULL, *source = NULL;
	int r = shipped_read(&presets, name, false, &text, &file, err);

	if (r < 0)
		return r;
	if (asprintf(&source, "preset %s", file) < 0) {
		source = NULL;
		return err_nomem(err);
	}
	return cloche_allowlist_add_text(list, source, buf_data(&text), buf_len(&text), err);
}

int cloche_preset_list(cloche_preset_fn fn, void *user, cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = shipped_names(&presets, &names, err);

	for (char *const *n = names; r == 0 && *n; n++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(ALLOWLIST_MAX_TEXT);
		_cleanup_(freep) char *file = NULL;

		if (shipped_read(&presets, *n, false, &text, &file, NULL) == 0 && buf_cstr(&text))
			fn(*n, buf_cstr(&text), user);
	}
	return r;
}
