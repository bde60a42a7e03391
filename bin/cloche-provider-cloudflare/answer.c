/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"
#include "base/json.h"

bool answer_read(struct str body, char ret[ANSWER_TEXT_MAX + 1])
{
	_cleanup_json_ json_t *root = NULL;
	struct str text;
	size_t n;

	ret[0] = '\0';
	if (body.n > ANSWER_MAX || json_text_read(body, 0, &root, NULL) < 0)
		return false;
	text = json_str_at(root, "error");
	n = MIN(text.n, (size_t)ANSWER_TEXT_MAX);
	for (size_t i = 0; i < n; i++)
		ret[i] = text.p[i] >= ' ' && text.p[i] < 0x7f ? text.p[i] : '?';
	ret[n] = '\0';
	return json_is_true(json_object_get(root, "success"));
}
