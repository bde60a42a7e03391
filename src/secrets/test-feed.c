/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/test-feed.h"
#include "base/rand.h"
#include "secrets/scrub_internal.h"

#include "tap.h"

struct secret_set *set;
struct scrubber *scrubber;

void use(const char *const *values, size_t n)
{
	set = secret_set_new();
	for (size_t i = 0; i < n; i++) {
		_cleanup_(secret_spec_done) struct secret_spec spec = {0};
		char text[32];

		(void)snprintf(text, sizeof(text), "K%zu@x.com", i);
		must(secret_spec_parse(str_from(text), &spec, NULL) == 0);
		must(secret_set_add(set, &spec, str_from(values[i]), STR_NULL, NULL) == 0);
	}
	must(scrubber_new(set, &scrubber, NULL) == 0);
}

void drop(void)
{
	scrubber = scrubber_free(scrubber);
	set = secret_set_free(set);
}

struct str fake(size_t i)
{
	return secret_set_get(set, i)->surrogate;
}

void feed(struct str text, size_t step, struct buf *out, uint64_t *ret_hits)
{
	_cleanup_(scrub_freep) struct scrub *s = scrub_new(scrubber);
	char *copy = malloc(text.n + 1);

	must(s && copy);
	for (size_t i = 0; i < text.n;) {
		size_t n = MIN(step ? step : rand_below(40), text.n - i);
		struct str first, second;

		memcpy(copy, text.p + i, n);
		scrub_feed(s, copy, n, &first, &second);
		must(buf_add_str(out, first) == 0 && buf_add_str(out, second) == 0);
		i += n;
		/* the held part is never more than promised */
		check(i - buf_len(out) <= scrubber->max_held);
	}
	must(buf_add_str(out, scrub_end(s)) == 0);
	if (ret_hits)
		*ret_hits = scrub_hits(s);
	free(copy);
}
