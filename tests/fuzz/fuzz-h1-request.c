/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* However a request head is cut, it means the same; what was understood can be written, and what
 * was written is understood as the same again. */
#include "fuzz-h1.h"

enum { ADDED_MAX = 3 }; /* Host, Content-Length or Transfer-Encoding, Connection */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(struct http_head *head)
{
	struct http_head again = HTTP_HEAD_INIT;
	struct buf wire = BUF_INIT(1 << 20);
	struct h1_parser p;
	size_t used;
	int r = h1_write_request(&wire, head, 0, NULL);

	require((r < 0) == !!(head->flags & (HTTP_CONNECT | HTTP_TRACE)) ||
		(r < 0 && (str_ieq(http_head_method(head), STR("CONNECT")) ||
				  str_ieq(http_head_method(head), STR("TRACE")))));
	/* The writer adds the fields of framing: a head at a limit may then be over it. */
	if (r == 0 && buf_len(&wire) <= HTTP_HEAD_MAX &&
		head->fields.n + ADDED_MAX <= HTTP_FIELDS_MAX) {
		h1_parser_request(&p, &again);
		require(parse_cut(&p, (uint8_t *)buf_data(&wire), buf_len(&wire), 0, &used) ==
			H1_DONE);
		require(used == buf_len(&wire));
		same_message(head, &again);
		http_head_strip(head);
		http_head_strip(&again);
		same_fields(&head->fields, &again.fields);
	}
	buf_done(&wire);
	http_head_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head head = HTTP_HEAD_INIT, other = HTTP_HEAD_INIT;
	static const size_t steps[] = {1, 2, 7, 61};
	struct h1_parser p, q;
	size_t used, other_used;
	enum h1_result r;

	h1_parser_request(&p, &head);
	r = parse_cut(&p, data, size, 0, &used);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		h1_parser_request(&q, &other);
		require(parse_cut(&q, data, size, steps[i], &other_used) == r);
		require(q.error == p.error);
		if (r == H1_DONE) {
			require(other_used == used);
			same_head(&head, &other);
		}
	}
	require(head.fields.n <= HTTP_FIELDS_MAX && head.fields.text.cap <= HTTP_STORE_MAX);
	if (r == H1_DONE)
		write_and_read(&head);
	http_head_done(&head);
	http_head_done(&other);
	return 0;
}
