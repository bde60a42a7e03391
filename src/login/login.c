/* SPDX-License-Identifier: Apache-2.0 */
#include "login/login.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/strv.h"

#include <errno.h>
#include <string.h>

enum { NAMES_MAX = 8, NAME_MAX_BYTES = 128, URL_MAX = 512, ID_MAX = 256 };
#define MSEC_PER_SEC UINT64_C(1000)
/* What lasts longer is taken for this long. */
#define LIFE_MAX_SEC (UINT64_C(10) * 366 * 24 * 3600)

struct login {
	struct host host;
	uint16_t port;
	char *target;
	struct login_spec spec;
};

void login_spec_done(struct login_spec *spec)
{
	free(spec->file);
	free(spec->lock);
	strv_free(spec->token);
	strv_free(spec->refresh);
	strv_free(spec->expires);
	free(spec->url);
	free(spec->client_id);
	free(spec->client_secret);
	free(spec->again);
	*spec = (struct login_spec){0};
}

static int login_copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int login_spec_copy(const struct login_spec *from, struct login_spec *to)
{
	*to = (struct login_spec){.form = from->form};
	if (login_copy_text(from->file, &to->file) < 0 ||
		login_copy_text(from->lock, &to->lock) < 0 ||
		login_copy_text(from->url, &to->url) < 0 ||
		login_copy_text(from->client_id, &to->client_id) < 0 ||
		login_copy_text(from->client_secret, &to->client_secret) < 0 ||
		login_copy_text(from->again, &to->again) < 0 ||
		strv_copy(from->token, &to->token) < 0 ||
		strv_copy(from->refresh, &to->refresh) < 0)
		return -ENOMEM;
	return strv_copy(from->expires, &to->expires);
}

struct login *login_free(struct login *l)
{
	if (l) {
		free(l->target);
		login_spec_done(&l->spec);
		free(l);
	}
	return NULL;
}

void login_tokens_done(struct login_tokens *t)
{
	t->access = secret_free(t->access);
	t->refresh = secret_free(t->refresh);
}

const struct login_spec *login_spec_of(const struct login *l)
{
	return &l->spec;
}

const struct host *login_host(const struct login *l)
{
	return &l->host;
}

uint16_t login_port(const struct login *l)
{
	return l->port;
}

struct str login_target(const struct login *l)
{
	return str_from(l->target);
}

/* --- what describes one --- */

static int login_read_url(struct login *l, struct str url, struct cloche_err *err)
{
	struct str scheme = STR("https://"), authority, target;

	if (str_starts(url, scheme) && url.n <= URL_MAX && str_is_visible(url)) {
		url = str_from_index(url, scheme.n);
		authority = str_prefix(url, str_chr(url, '/'));
		target = str_from_index(url, authority.n);
		if (target.n > 0 && str_chr(target, '#') == target.n &&
			host_parse_authority(authority, &l->host, &l->port) == 0) {
			l->port = l->port ? l->port : 443;
			l->target = str_dup(target);
			return l->target ? 0 : err_nomem(err);
		}
	}
	return err_set(err, E_CONFIG, "a login is renewed at https://HOST[:PORT]/PATH");
}

static bool login_are_names(char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		if (i >= NAMES_MAX || !*names[i] || strlen(names[i]) > NAME_MAX_BYTES)
			return false;
	return true;
}

static bool login_is_id(const char *text)
{
	return !text || (*text && strlen(text) <= ID_MAX && str_is_visible(str_from(text)));
}

static int login_check(const struct login_spec *spec, struct cloche_err *err)
{
	if (!spec->client_id || strv_count(spec->token) == 0 || strv_count(spec->refresh) == 0)
		return err_set(err, E_CONFIG,
			"a login is renewed with a client id, and has members for both tokens");
	if (!login_is_id(spec->client_id) || !login_is_id(spec->client_secret))
		return err_set(err, E_CONFIG,
			"the client of a login has an id of at most %d visible characters", ID_MAX);
	if (!login_are_names(spec->token) || !login_are_names(spec->refresh) ||
		!login_are_names(spec->expires))
		return err_set(err, E_CONFIG,
			"a member of a login has at most %d names of at most %d bytes", NAMES_MAX,
			NAME_MAX_BYTES);
	return 0;
}

int login_new(const struct login_spec *spec, struct login **ret, struct cloche_err *err)
{
	_cleanup_(login_freep) struct login *l = calloc(1, sizeof(*l));
	int r = l ? login_read_url(l, str_from(spec->url), err) : err_nomem(err);

	if (r == 0)
		r = login_check(spec, err);
	if (r == 0 && login_spec_copy(spec, &l->spec) < 0)
		r = err_nomem(err);
	if (r == 0)
		*ret = TAKE_PTR(l);
	return r;
}

/* --- a token --- */

/* Section 4.1.4. */
uint64_t login_token_end(struct str token)
{
	_cleanup_(buf_done_wipedp) struct buf claims = BUF_INIT(LOGIN_TOKEN_MAX);
	_cleanup_json_ json_t *o = NULL;
	struct str rest = str_from_index(token, str_chr(token, '.'));
	struct str middle = rest.n > 0 ? str_from_index(rest, 1) : rest;
	json_int_t end;

	middle = str_prefix(middle, str_chr(middle, '.'));
	if (middle.n == 0 || base64_decode(&claims, middle) < 0 ||
		json_text_read(buf_str(&claims), JSON_REJECT_DUPLICATES, &o, NULL) < 0)
		return 0;
	end = json_integer_value(json_object_get(o, "exp"));
	return end > 0 && (uint64_t)end < UINT32_MAX ? (uint64_t)end * MSEC_PER_SEC : 0;
}

static uint64_t login_end_of(const struct secret *token)
{
	return token ? login_token_end(secret_reveal(token)) : 0;
}

/* --- its file --- */

/* Return the object that has the last of these members; NULL: none. */
static json_t *login_find(json_t *at, char *const *names)
{
	for (; at && names && names[0] && names[1]; names++)
		at = json_object_get(at, names[0]);
	return names && names[0] && json_is_object(at) ? at : NULL;
}

static const char *login_last(char *const *names)
{
	return names[strv_count(names) - 1];
}

static json_t *login_get(json_t *file, char *const *names)
{
	json_t *object = login_find(file, names);

	return object ? json_object_get(object, login_last(names)) : NULL;
}

/* It may be missing. Return 0 or -ENOMEM. */
static int login_take_token(const json_t *value, struct secret **ret)
{
	struct str s = json_str(value);

	if (s.n < LOGIN_TOKEN_MIN || s.n > LOGIN_TOKEN_MAX || !str_is_visible(s))
		return 0;
	*ret = secret_new(s.p, s.n);
	return *ret ? 0 : -ENOMEM;
}

static int login_parse(struct str text, json_t **ret, struct cloche_err *err)
{
	int r = text.n > LOGIN_FILE_MAX ? -EINVAL
					: json_text_read(text, JSON_REJECT_DUPLICATES, ret, NULL);

	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 || !json_is_object(*ret)
		       ? err_set(err, E_CONFIG, "the file of the login is no JSON object")
		       : 0;
}

int login_file_read(
	const struct login *l, struct str text, struct login_tokens *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *file = NULL;
	json_int_t expires;
	int r;

	*ret = (struct login_tokens){0};
	r = login_parse(text, &file, err);
	if (r < 0)
		return r;
	if (login_take_token(login_get(file, l->spec.token), &ret->access) < 0 ||
		login_take_token(login_get(file, l->spec.refresh), &ret->refresh) < 0)
		return err_nomem(err);
	expires = json_integer_value(login_get(file, l->spec.expires));
	ret->expires_msec = expires > 0       ? (uint64_t)expires
			    : l->spec.expires ? 0
					      : login_end_of(ret->access);
	return 0;
}

/* Return 0 or -ENOMEM; where there is no object for it, nothing is set. Takes value. */
static int login_put(json_t *file, char *const *names, json_t *value)
{
	json_t *object = login_find(file, names);

	if (object)
		return json_put(object, login_last(names), value);
	json_decref(value);
	return 0;
}

static int login_put_token(json_t *file, char *const *names, const struct secret *token)
{
	struct str s = token ? secret_reveal(token) : STR_NULL;

	return token ? login_put(file, names, json_stringn(s.p, s.n)) : 0;
}

int login_file_write(const struct login *l, struct str text, const struct login_tokens *tokens,
	struct buf *out, struct cloche_err *err)
{
	_cleanup_json_ json_t *file = NULL;
	bool lines = str_chr(str_trim(text), '\n') < str_trim(text).n;
	int r = login_parse(text, &file, err);

	if (r < 0)
		return r;
	r = login_put_token(file, l->spec.token, tokens->access);
	if (r == 0)
		r = login_put_token(file, l->spec.refresh, tokens->refresh);
	if (r == 0 && tokens->expires_msec > 0)
		r = login_put(
			file, l->spec.expires, json_integer((json_int_t)tokens->expires_msec));
	if (r == 0)
		r = json_text_write(out, file, lines ? 2 : JSON_TEXT_COMPACT);
	if (r == 0 && str_ends(text, STR("\n")))
		r = buf_add_char(out, '\n');
	return r < 0 ? err_sys(err, -r, "write the login") : 0;
}

/* --- the request and its answer --- */

struct str login_request_type(const struct login *l)
{
	return l->spec.form ? STR("application/x-www-form-urlencoded") : STR("application/json");
}

static int login_add_pair(
	const struct login *l, const char *name, struct str value, struct buf *out)
{
	static const char hex[] = "0123456789ABCDEF";
	int r;

	if (value.n == 0)
		return 0;
	if (!l->spec.form) {
		_cleanup_json_ json_t *text = json_stringn(value.p, value.n);

		r = text ? buf_printf(out, "%s\"%s\":", buf_len(out) > 0 ? "," : "{", name)
			 : -ENOMEM;
		return r < 0 ? r : json_text_write(out, text, 0);
	}
	r = buf_printf(out, "%s%s=", buf_len(out) > 0 ? "&" : "", name);
	for (size_t i = 0; r == 0 && i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];
		bool plain = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';

		plain |= (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
		r = plain ? buf_add_char(out, (char)c)
			  : buf_add_str(out, str_make((char[]){'%', hex[c >> 4], hex[c & 15]}, 3));
	}
	return r;
}

int login_request_body(const struct login *l, struct str refresh, struct buf *out)
{
	int r = login_add_pair(l, "grant_type", STR("refresh_token"), out);

	if (r == 0)
		r = login_add_pair(l, "refresh_token", refresh, out);
	if (r == 0)
		r = login_add_pair(l, "client_id", str_from(l->spec.client_id), out);
	if (r == 0)
		r = login_add_pair(l, "client_secret", str_from(l->spec.client_secret), out);
	return r < 0 || l->spec.form ? r : buf_add_char(out, '}');
}

int login_answer_read(
	struct str body, uint64_t now_msec, struct login_tokens *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	const json_t *refresh, *life;
	double sec;
	int r;

	*ret = (struct login_tokens){0};
	r = body.n > LOGIN_ANSWER_MAX ? -EINVAL
				      : json_text_read(body, JSON_REJECT_DUPLICATES, &o, NULL);
	if (r == -ENOMEM)
		return err_nomem(err);
	refresh = json_object_get(o, "refresh_token");
	life = json_object_get(o, "expires_in");
	if (r == 0 && (login_take_token(json_object_get(o, "access_token"), &ret->access) < 0 ||
			      login_take_token(refresh, &ret->refresh) < 0))
		return err_nomem(err);
	if (!ret->access || (refresh && !json_is_null(refresh) && !ret->refresh) ||
		(life && !json_is_null(life) && !(json_number_value(life) > 0)))
		return err_set(err, E_PROTOCOL, "the answer is not that of a token endpoint");
	sec = MIN(json_number_value(life), (double)LIFE_MAX_SEC);
	ret->expires_msec =
		sec > 0 ? now_msec + (uint64_t)sec * MSEC_PER_SEC : login_end_of(ret->access);
	return 0;
}

/* RFC 6749 section 5.2, and the words of OpenAI. */
static bool login_is_refusal(struct str word)
{
	return str_eq(word, STR("invalid_grant")) || str_starts(word, STR("refresh_token_"));
}

bool login_answer_refuses(struct str body)
{
	_cleanup_json_ json_t *o = NULL;
	const json_t *error;

	if (body.n > LOGIN_ANSWER_MAX || json_text_read(body, JSON_REJECT_DUPLICATES, &o, NULL) < 0)
		return false;
	error = json_object_get(o, "error");
	return login_is_refusal(json_str(error)) || login_is_refusal(json_str_at(error, "code")) ||
	       login_is_refusal(json_str_at(error, "type"));
}
