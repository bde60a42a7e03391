/* SPDX-License-Identifier: Apache-2.0 */
#include "base/account.h"
#include "base/parse.h"

bool account_is_name(struct str s)
{
	return s.n > 0 && s.n <= ACCOUNT_MAX_NAME && s.p[0] != '-' && s.p[0] != '.' &&
	       str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "._-");
}

bool account_find(struct str text, struct str name, struct str ret[ACCOUNT_FIELDS])
{
	uint64_t want, id;
	bool number = parse_u64(name, UINT32_MAX - 1, &want) == 0;

	while (text.n) {
		struct str line = str_next_line(&text);

		for (size_t i = 0; i < ACCOUNT_FIELDS; i++)
			ret[i] = str_next(&line, ':');
		if (parse_u64(ret[ACCOUNT_ID], UINT32_MAX - 1, &id) < 0)
			continue;
		if (number ? id == want : str_eq(ret[ACCOUNT_NAME], name))
			return true;
	}
	return false;
}
