/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* The first byte says what the request was; the others are a response. However it is cut, it means
 * the same, and what is written of it means the same again. */
#include "fuzz-h1.h"

enum { ADDED_MAX = 3 }; /* Content-Length or Transfer-Encoding, Connection, Upgrade */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(struct http_head *head, unsigned opt)
{
	struct http_head again = HTTP_HEAD_INIT;
	struct buf wire = BUF_INIT(1 << 20);
	struct h1_parser p;
	size_t used;

	require(h1_write_response(&wire, head, head->status == 101 ? H1_W_UPGRADE : 0) == 0);
	/* The writer adds the fields of framing: a head at a limit may then be over it. */
	if (buf_len(&wire) <= HTTP_HEAD_MAX && head->fields.n + ADDED_MAX <= HTTP_FIELDS_MAX) {
		h1_parser_response(&p, &again, opt);
		require(parse_cut(&p, (uint8_t *)buf_data(&wire), buf_len(&wire), 0, &used) ==
			H1_DONE);
		require(used == buf_len(&wire));
		same_message(head, &again);
		require(str_eq(http_head_reason(head), http_head_reason(&again)));
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
	unsigned opt;

	if (size == 0)
		return 0;
	opt = data[0] & (H1_TO_HEAD | H1_UPGRADE_ASKED);
	data++;
	size--;
	h1_parser_response(&p, &head, opt);
	r = parse_cut(&p, data, size, 0, &used);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		h1_parser_response(&q, &other, opt);
		require(parse_cut(&q, data, size, steps[i], &other_used) == r);
		require(q.error == p.error);
		if (r == H1_DONE) {
			require(other_used == used);
			same_head(&head, &other);
		}
	}
	if (r == H1_DONE) {
		require(head.status != 101 || (opt & H1_UPGRADE_ASKED));
		write_and_read(&head, opt);
	}
	http_head_done(&head);
	http_head_done(&other);
	return 0;
}
