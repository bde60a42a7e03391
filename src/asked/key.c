/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/key.h"
#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>

enum { KEY_FILE_MAX = 4096 };

static int key_take(struct str key, const char *variable, const char *file_variable,
	const char *hint, char ret[KEY_MAX + 1], struct cloche_err *err)
{
	key = str_trim(str_next_line(&key));
	if (!key.n || key.n > KEY_MAX || !str_is_visible(key)) {
		err_set(err, E_USAGE, "what is given as the service's key is none");
		err_hint(err, "%s, or the first line of the file %s, is %s", variable,
			file_variable, hint);
		return -E_USAGE;
	}
	str_copy(ret, KEY_MAX + 1, key);
	return 0;
}

int key_find(const char *variable, const char *file_variable, const char *hint,
	char ret[KEY_MAX + 1], struct cloche_err *err)
{
	const char *key = getenv(variable), *file = getenv(file_variable);
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(KEY_FILE_MAX);
	int r;

	if (key && *key)
		return key_take(str_from(key), variable, file_variable, hint, ret, err);
	if (!file || !*file) {
		err_set(err, E_USAGE, "there is no key for the service");
		err_hint(err, "set %s to %s, or %s to the path of a file that has it", variable,
			hint, file_variable);
		return -E_USAGE;
	}
	r = fd_read_file(AT_FDCWD, file, &text, err);
	return r < 0 ? r : key_take(buf_str(&text), variable, file_variable, hint, ret, err);
}
