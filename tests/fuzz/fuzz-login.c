/* fuzz-deps: base policy login */
/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as the file of a login, as the answer of a token endpoint, and as its error. A
 * token that comes out can stand in a header; and what is written into a file is read from it
 * again. */

#include "login/login.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static char in[] = "oauth", access_name[] = "access", refresh_name[] = "refresh_token",
	    expires_name[] = "expires", url[] = "https://login.test/token", id[] = "client";
static char *access_at[] = {in, access_name, NULL}, *refresh_at[] = {refresh_name, NULL},
	    *expires_at[] = {in, expires_name, NULL};

static struct login *make(void)
{
	const struct login_spec spec = {.url = url,
		.client_id = id,
		.token = access_at,
		.refresh = refresh_at,
		.expires = expires_at};
	struct login *l = NULL;

	expect(login_new(&spec, &l, NULL) == 0);
	return l;
}

static void check_token(const struct secret *token)
{
	struct str s = token ? secret_reveal(token) : STR("long enough");

	expect(s.n >= LOGIN_TOKEN_MIN && s.n <= LOGIN_TOKEN_MAX);
	expect(!token || str_is_visible(s));
}

static bool is_same(const struct secret *a, const struct secret *b)
{
	return a && b && str_eq(secret_reveal(a), secret_reveal(b));
}

static void check_file(const struct login *l, struct str text, const struct login_tokens *fresh)
{
	struct buf out = BUF_INIT(16 * LOGIN_FILE_MAX);
	struct login_tokens was, is;

	if (login_file_read(l, text, &was, NULL) == 0) {
		check_token(was.access);
		check_token(was.refresh);
		expect(login_file_write(l, text, fresh, &out, NULL) == 0);
		if (buf_len(&out) <= LOGIN_FILE_MAX) {
			expect(login_file_read(l, buf_str(&out), &is, NULL) == 0);
			expect(!was.access || is_same(is.access, fresh->access));
			expect(is_same(is.refresh, fresh->refresh));
			expect(!was.access || is.expires_msec == fresh->expires_msec);
			login_tokens_done(&is);
		}
	}
	login_tokens_done(&was);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct login *l;
	struct str text = str_make(data, size);
	struct login_tokens fresh = {.access = secret_new("access-token", 12),
		.refresh = secret_new("refresh-token", 13),
		.expires_msec = 5};
	struct login_tokens t;

	l = l ? l : make();
	expect(fresh.access && fresh.refresh);
	check_file(l, text, &fresh);
	if (login_answer_read(text, 1000, &t, NULL) == 0) {
		expect(t.access != NULL);
		(void)login_answer_refuses(text);
		check_token(t.access);
		check_token(t.refresh);
		expect(t.expires_msec == 0 || t.expires_msec >= 1000);
	}
	login_tokens_done(&t);
	login_tokens_done(&fresh);
	return 0;
}
