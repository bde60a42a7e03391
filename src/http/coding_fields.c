/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: reads the two fields about content codings, Content-Encoding and
 * Accept-Encoding. */
#include "http/coding.h"
#include "http/valid.h"

#include <errno.h>
#include <stdio.h>

/* Their names in Accept-Encoding; x-gzip is read and not written (RFC 9110 8.4.1.3). */
static const char *const names[CODING_N] = {
	[CODING_GZIP] = "gzip",
	[CODING_DEFLATE] = "deflate",
	[CODING_BR] = "br",
	[CODING_ZSTD] = "zstd",
};
#define IDENTITY CODING_N

/* Return CODING_N for identity, -ENOTSUP for an unknown name. */
static int find(struct str name)
{
	for (int i = 0; i < CODING_N; i++)
		if (str_ieq(name, str_from(names[i])))
			return i;
	if (str_ieq(name, STR("x-gzip")))
		return CODING_GZIP;
	return str_ieq(name, STR("identity")) ? IDENTITY : -ENOTSUP;
}

static int add_all(struct coding_list *list, struct str value)
{
	struct str name;

	while (http_list_next(&value, &name)) {
		int coding = find(name);

		if (coding < 0)
			return coding;
		if (coding == IDENTITY)
			continue;
		if (list->n == CODING_STACK_MAX)
			return -E2BIG;
		list->v[list->n++] = (enum coding)coding;
	}
	return 0;
}

int coding_list_read(const struct http_fields *f, struct coding_list *ret)
{
	*ret = (struct coding_list){0};
	for (int i = http_fields_find(f, STR("Content-Encoding"), 0); i >= 0;
		i = http_fields_find(f, STR("Content-Encoding"), (unsigned)i + 1)) {
		int r = add_all(ret, http_fields_value(f, (unsigned)i));

		if (r < 0) {
			*ret = (struct coding_list){0};
			return r;
		}
	}
	return 0;
}

/* RFC 9110 12.4.2: 0 to 1 with at most three digits. */
static bool is_weight(struct str s)
{
	if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
		return false;
	return str_is_all(str_from_index(s, 2), s.p[0] == '1' ? "0" : STR_DIGITS);
}

static bool is_zero(struct str weight)
{
	return weight.n > 0 && str_is_all(weight, "0.");
}

/* Split "name [ ; q=weight ]". Return false if the weight is malformed. */
static bool split_weight(struct str element, struct str *ret_name, struct str *ret_weight)
{
	size_t at = str_chr(element, ';');
	struct str q = str_trim(str_from_index(element, at + 1));

	*ret_name = str_trim(str_prefix(element, at));
	*ret_weight = STR_NULL;
	if (at == element.n)
		return true;
	if (q.n < 2 || (q.p[0] | 0x20) != 'q' || q.p[1] != '=')
		return false;
	*ret_weight = str_from_index(q, 2);
	return is_weight(*ret_weight);
}

struct acceptable {
	bool named[CODING_N + 1]; /* also those that are not accepted */
	char *text;
	size_t n;
};

static void add_accepted(struct acceptable *a, int coding, struct str weight)
{
	if (a->named[coding])
		return;
	a->named[coding] = true;
	if (is_zero(weight))
		return;
	a->n += (size_t)snprintf(a->text + a->n, CODING_ACCEPT_MAX - a->n, "%s%s%s%.*s",
		a->n ? ", " : "", coding == IDENTITY ? "identity" : names[coding],
		weight.n ? ";q=" : "", STR_FMT(weight));
}

static void accept_list(struct acceptable *a, struct str list, struct str *any, bool *has_any)
{
	struct str element, name, weight;

	while (http_list_next(&list, &element)) {
		int coding;

		if (!split_weight(element, &name, &weight))
			continue;
		if (str_eq(name, STR("*"))) {
			*any = weight;
			*has_any = true;
			continue;
		}
		coding = find(name);
		if (coding >= 0)
			add_accepted(a, coding, weight);
	}
}

void coding_accept(const struct http_fields *f, char ret[CODING_ACCEPT_MAX])
{
	struct acceptable a = {.text = ret};
	struct str any = STR_NULL;
	bool has_any = false;

	ret[0] = '\0';
	for (int i = http_fields_find(f, STR("Accept-Encoding"), 0); i >= 0;
		i = http_fields_find(f, STR("Accept-Encoding"), (unsigned)i + 1))
		accept_list(&a, http_fields_value(f, (unsigned)i), &any, &has_any);
	for (int coding = 0; has_any && coding < CODING_N; coding++)
		add_accepted(&a, coding, any);
	if (a.n == 0)
		(void)snprintf(ret, CODING_ACCEPT_MAX, "identity");
}

static bool coding_is_listed(struct str accept, enum coding coding)
{
	struct str element;

	while (http_list_next(&accept, &element))
		if (str_eq(str_prefix(element, str_chr(element, ';')), str_from(names[coding])))
			return true;
	return false;
}

bool coding_list_is_asked(const struct coding_list *list, const struct http_fields *f)
{
	char accept[CODING_ACCEPT_MAX];

	coding_accept(f, accept);
	for (unsigned i = 0; i < list->n; i++)
		if (!coding_is_listed(str_from(accept), list->v[i]))
			return false;
	return true;
}
