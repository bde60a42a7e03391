/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of a folder's protocols, by its table: the smallest and the largest values go to
 * the other end and back, and what is cut short, too long or out of its bounds is refused by both
 * ends.
 */
#include "ipc/test-message.h"
#include "tap.h"

#include <errno.h>

enum { MAX_MESSAGE = 8 * 1024 * 1024, MAX_STRUCT = 32 * 1024 };

/* A text that does for a path, an argument and a variable. */
static char *make_text(size_t n)
{
	char *z = malloc(n + 1);

	must(z);
	for (size_t i = 0; i < n; i++)
		z[i] = i % 2 ? '=' : '/';
	z[n] = '\0';
	return z;
}

static void fill_int(const struct field *f, char *p, bool largest)
{
	uint64_t v = f->min;

	if (f->flags & FIELD_CODE)
		v = E_NETWORK;
	else if (largest)
		v = f->max || f->flags & FIELD_BOUNDED ? f->max : UINT64_MAX;
	for (unsigned i = 0; i == 0 || i < f->count; i++)
		memcpy(p + (size_t)i * f->size, &v, f->size); /* the tests run on little-endian */
}

static void fill_text(const struct field *f, void *p, size_t n)
{
	char *text;
	char **v;

	if (f->flags & FIELD_NOT_EMPTY && n == 0)
		n = 1;
	text = make_text(n);
	if (f->kind == FIELD_STR) {
		*(struct str *)p = str_make(text, n);
	} else if (f->kind == FIELD_TEXT) {
		memcpy(p, text, n < f->size ? n : f->size);
		free(text);
	} else if (f->kind == FIELD_STRV) {
		v = calloc(2, sizeof(char *));
		must(v);
		v[0] = text;
		*(char ***)p = v;
	} else {
		*(char **)p = text;
	}
}

static void fill(const struct message *t, char *m, bool largest)
{
	memset(m, 0, t->size);
	for (size_t i = 0; i < t->fields_n; i++) {
		const struct field *f = &t->fields[i];
		char *p = m + f->at;

		if (f->kind == FIELD_INT)
			fill_int(f, p, largest);
		else if (f->kind == FIELD_BYTES)
			memset(p, largest ? 0xff : 0, f->size);
		else if (f->kind == FIELD_PART)
			fill(f->part(), p, largest);
		else if (f->kind == FIELD_PARTS)
			continue; /* none: the part has a row of its own */
		else if (largest || f->kind != FIELD_OPTIONAL)
			fill_text(f, p, largest ? f->max : f->kind == FIELD_STRV ? 2 : 0);
	}
	test_message_mend(t, m);
}

/* Frees what fill made: views too are heap memory there. */
static void unfill(const struct message *t, char *m)
{
	for (size_t i = 0; i < t->fields_n; i++) {
		const struct field *f = &t->fields[i];
		void *p = m + f->at;

		if (f->kind == FIELD_PART)
			unfill(f->part(), p);
		if (f->kind == FIELD_STR) {
			free((char *)(uintptr_t)((struct str *)p)->p);
			*(struct str *)p = STR_NULL;
		}
	}
	message_done(t, m);
}

static bool decodes(const struct message *t, struct str bytes)
{
	static char m[MAX_STRUCT];
	/* In memory of its own, so that a read past the end is seen. */
	char *copy = str_dup(bytes);
	bool ok;

	must(copy && t->size <= sizeof(m));
	ok = message_get(str_make(copy, bytes.n), t, m);
	if (ok)
		message_done(t, m);
	free(copy);
	return ok;
}

static int encode(struct buf *b, const struct message *t, const void *m)
{
	struct wire_out w = wire_out(b);

	message_put(&w, t, m);
	return w.error;
}

/* Cut at each of the first and the last bytes, and at some in between: each try has a copy. */
static void refuses_what_is_cut(const struct message *t, struct str whole)
{
	size_t step = whole.n / 32 + 1, edge = whole.n > 64 * 1024 ? 16 : 512;

	for (size_t n = 0; n < whole.n;
		n += n < edge || whole.n - n <= edge ? 1 : MIN(step, whole.n - edge - n))
		if (decodes(t, str_prefix(whole, n)))
			tap_fail("%s: %zu of %zu bytes were accepted", t->name, n, whole.n);
}

static void goes_and_comes_back(const struct message *t, bool largest)
{
	_cleanup_(buf_donep) struct buf first = BUF_INIT(MAX_MESSAGE),
					second = BUF_INIT(MAX_MESSAGE);
	static char m[MAX_STRUCT], got[MAX_STRUCT];

	must(t->size <= sizeof(m));
	fill(t, m, largest);
	if (encode(&first, t, m) != 0)
		tap_fail(
			"%s: the %s values are refused", t->name, largest ? "largest" : "smallest");
	unfill(t, m);
	if (message_get(buf_str(&first), t, got)) {
		check_int(encode(&second, t, got), 0);
		check(str_eq(buf_str(&first), buf_str(&second)));
		message_done(t, got);
	} else {
		tap_fail("%s: the %s values do not come back", t->name,
			largest ? "largest" : "smallest");
	}
	refuses_what_is_cut(t, buf_str(&first));
	check_int(buf_add(&first, "", 1), 0);
	check(!decodes(t, buf_str(&first)));
}

/* Puts one value beyond the bounds of field f into m. False if no value is beyond them. */
static bool exceed(const struct field *f, char *p, bool below)
{
	uint64_t v = below ? (uint64_t)f->min - 1 : (uint64_t)f->max + 1;

	if (f->kind == FIELD_INT) {
		bool bounded = f->max != 0 || f->flags & FIELD_BOUNDED;

		if (below ? f->min == 0 : !bounded || (f->wire < 8 && v >> 8 * f->wire))
			return false;
		memcpy(p, &v, f->size);
		return f->size != 1 || f->wire == 1;
	}
	if (below || f->flags & FIELD_CUT || f->kind == FIELD_TEXT || f->kind == FIELD_BYTES ||
		f->kind == FIELD_PART || f->kind == FIELD_PARTS)
		return false;
	fill_text(f, p, (size_t)f->max + 1);
	return true;
}

/* The encoder refuses a value beyond its bounds; one that an encoder without bounds has written is
 * refused by the decoder. */
static void refuses_what_is_beyond(const struct message *t, size_t i, bool below)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_MESSAGE), strict = BUF_INIT(MAX_MESSAGE);
	struct field loose_fields[64];
	struct message loose = *t;
	static char m[MAX_STRUCT];

	must(t->fields_n <= ARRAY_SIZE(loose_fields));
	memcpy(loose_fields, t->fields, t->fields_n * sizeof(struct field));
	loose_fields[i].min = 0;
	loose_fields[i].max = t->fields[i].kind == FIELD_INT ? 0 : UINT32_MAX;
	loose_fields[i].flags &= (uint8_t)~FIELD_BOUNDED;
	loose.fields = loose_fields;
	loose.check = NULL;
	fill(t, m, false);
	if (t->fields[i].kind != FIELD_INT && t->fields[i].kind != FIELD_PART) {
		struct field only = t->fields[i];
		struct message one = {.fields = &only, .fields_n = 1};

		unfill(&one, m);
	}
	if (exceed(&t->fields[i], m + t->fields[i].at, below)) {
		check_int(encode(&strict, t, m), -EINVAL);
		check_int(encode(&b, &loose, m), 0);
		if (decodes(t, buf_str(&b)))
			tap_fail(
				"%s: %s is accepted beyond its bounds", t->name, t->fields[i].name);
	}
	unfill(t, m);
}

static void for_each(void (*fn)(const struct message *t))
{
	for (const message_fn *t = test_messages; *t; t++)
		fn((*t)());
}

static void round_trips(const struct message *t)
{
	goes_and_comes_back(t, false);
	goes_and_comes_back(t, true);
}

static void bounds(const struct message *t)
{
	for (size_t i = 0; i < t->fields_n; i++) {
		refuses_what_is_beyond(t, i, false);
		refuses_what_is_beyond(t, i, true);
	}
}

/* A text without a bound would be a mistake in a table: its largest is then empty. */
static void has_bounds(const struct message *t)
{
	for (size_t i = 0; i < t->fields_n; i++) {
		const struct field *f = &t->fields[i];

		if (f->kind >= FIELD_STR && f->kind <= FIELD_TEXT && f->max == 0)
			tap_fail("%s: %s has no bound", t->name, f->name);
		if (f->kind == FIELD_STRV && f->max_n == 0)
			tap_fail("%s: %s has no bound of their number", t->name, f->name);
	}
}

static void every_message_comes_back(void)
{
	for_each(round_trips);
}

static void every_bound_holds_at_both_ends(void)
{
	for_each(bounds);
}

enum only { ONLY, ONLY_END };
#define TEST_ONLY_FIELDS(F) F(ENUM, only, only, ONLY_END) F(ENUMS, more, only, ONLY_END, 2)
MESSAGE_STRUCT(test_only, TEST_ONLY_FIELDS);
MESSAGE_TABLE(test_only, TEST_ONLY_FIELDS, NULL);

/* No message has one yet: its largest value is 0. */
static void an_enum_of_one_value_is_bounded(void)
{
	round_trips(test_only_message());
	bounds(test_only_message());
	check(decodes(test_only_message(), STR("\0\0\0")));
	check(!decodes(test_only_message(), STR("\1\0\0")));
	check(!decodes(test_only_message(), STR("\0\0\1")));
}

static void every_text_has_a_bound(void)
{
	for_each(has_bounds);
}

int main(void)
{
	run_test(every_message_comes_back);
	run_test(every_bound_holds_at_both_ends);
	run_test(an_enum_of_one_value_is_bounded);
	run_test(every_text_has_a_bound);
	return tap_done();
}
