/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: sshd hands the command line to the login shell, which is whatever that
 * person likes. All shells agree about a text in single quotes only if it has no quote, no
 * backslash before a quote or a backslash (fish), no "!" (csh, also in quotes) and no line end
 * (csh). So the script is written as printf's %b reads it, and printf is called by the sh that the
 * login shell becomes. */
#include "remote.h"

#define BEFORE "exec sh -c 'eval \"$(printf %b \""
#define BEHIND "\")\"'"

bool remote_is_place(struct str place)
{
	/* A part that begins so would be an option of whatever a ProxyCommand calls. */
	static const struct str options[] = {STR("/-"), STR("@-"), STR(":-")};
	bool ok = place.n > 0 && place.p[0] != '-' &&
		  str_is_all(place, STR_LOWER STR_UPPER STR_DIGITS "-_.@:/[]%+,=~");

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		ok = ok && str_find(place, options[i]) == place.n;
	return ok;
}

int remote_add_command(struct buf *out, struct str script)
{
	int r = buf_add_str(out, STR(BEFORE));

	for (size_t i = 0; i < script.n && r == 0; i++) {
		unsigned char c = (unsigned char)script.p[i];

		r = c >= ' ' && c < 0x7f && !strchr("'\"\\!$`", c) ? buf_add_char(out, (char)c)
								   : buf_printf(out, "\\0%03o", c);
	}
	return r == 0 ? buf_add_str(out, STR(BEHIND)) : r;
}
