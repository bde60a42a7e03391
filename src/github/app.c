/* SPDX-License-Identifier: Apache-2.0 */
#include "github/app.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/strv.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

enum { ID_MAX = 64, PATH_ROOM = 256, NAMES_MAX = 500, RSA_BITS_MIN = 2048, SIGNATURE_MAX = 2048 };

struct github_app {
	EVP_PKEY *key;
	struct host host;
	uint16_t port;
	char *path; /* of the base URL, without '/' at its end */
	char *app_id, *installation_id;
	char *permissions; /* compact JSON, or NULL */
	char **repositories;
};

struct github_app *github_app_free(struct github_app *app)
{
	if (app) {
		EVP_PKEY_free(app->key);
		free(app->path);
		free(app->app_id);
		free(app->installation_id);
		free(app->permissions);
		strv_free(app->repositories);
		free(app);
	}
	return NULL;
}

const struct host *github_app_host(const struct github_app *app)
{
	return &app->host;
}

uint16_t github_app_port(const struct github_app *app)
{
	return app->port;
}

/* --- what describes one --- */

static bool is_word(struct str s, size_t max)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && str_chr(STR("._-"), s.p[i]) == 3)
			return false;
	return s.n > 0 && s.n <= max && s.p[0] != '.';
}

/* Never ask for a passphrase. */
static int no_passphrase(char *text, int size, int writing, void *user)
{
	return -1;
}

static int read_key(struct github_app *app, struct str pem, struct cloche_err *err)
{
	BIO *bio = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;

	if (bio)
		app->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	BIO_free(bio);
	ERR_clear_error();
	if (!app->key || EVP_PKEY_get_base_id(app->key) != EVP_PKEY_RSA ||
		EVP_PKEY_get_bits(app->key) < RSA_BITS_MIN)
		return err_set(err, E_CONFIG,
			"the key of a GitHub App has to be an RSA key of at least %d bits, as "
			"unencrypted PEM",
			RSA_BITS_MIN);
	return 0;
}

static int bad_url(struct cloche_err *err)
{
	return err_set(
		err, E_CONFIG, "the base URL of a GitHub App has to be https://HOST[:PORT][/PATH]");
}

static int read_url(struct github_app *app, struct str url, struct cloche_err *err)
{
	struct str host, path, port = STR_NULL;
	uint64_t n = 443;
	size_t colon;

	if (!str_starts(url, STR("https://")))
		return bad_url(err);
	url = str_from_index(url, 8);
	host = str_prefix(url, str_chr(url, '/'));
	path = str_from_index(url, host.n);
	colon = str_chr(host, ':');
	if (colon < host.n) {
		port = str_from_index(host, colon + 1);
		host = str_prefix(host, colon);
	}
	while (str_ends(path, STR("/")))
		path.n--;
	if (port.p && (parse_u64(port, UINT16_MAX, &n) < 0 || n == 0))
		return bad_url(err);
	if (host_parse(host, &app->host) < 0 || path.n > PATH_ROOM)
		return bad_url(err);
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] != '/' && !is_word(str_make(path.p + i, 1), 1) && path.p[i] != '.')
			return bad_url(err);
	app->port = (uint16_t)n;
	app->path = str_dup(path);
	return app->path ? 0 : err_nomem(err);
}

static int read_permissions(struct github_app *app, struct str text, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	const char *key;
	json_t *value;

	if (text.n == 0)
		return 0;
	if (json_text_read(text, JSON_REJECT_DUPLICATES, &o, NULL) < 0 || !json_is_object(o))
		return err_set(err, E_CONFIG, "the permissions of a GitHub App are no JSON object");
	json_object_foreach (o, key, value)
		if (!json_is_string(value))
			return err_set(err, E_CONFIG,
				"a permission of a GitHub App is \"read\" or \"write\"");
	app->permissions = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	return app->permissions ? 0 : err_nomem(err);
}

static int read_repositories(struct github_app *app, char **names, struct cloche_err *err)
{
	for (size_t i = 0; names && names[i]; i++) {
		if (i >= NAMES_MAX || !is_word(str_from(names[i]), 100))
			return err_set(err, E_CONFIG,
				"the repositories of a GitHub App are at most %d bare names",
				NAMES_MAX);
		if (strv_add(&app->repositories, str_from(names[i])) < 0)
			return err_nomem(err);
	}
	return 0;
}

int github_app_new(
	const struct github_app_spec *spec, struct github_app **ret, struct cloche_err *err)
{
	_cleanup_(github_app_freep) struct github_app *app = calloc(1, sizeof(*app));
	int r;

	if (!app)
		return err_nomem(err);
	if (!is_word(spec->app_id, ID_MAX) || !is_word(spec->installation_id, ID_MAX))
		return err_set(err, E_CONFIG,
			"the ids of a GitHub App and of its installation are letters and digits");
	app->app_id = str_dup(spec->app_id);
	app->installation_id = str_dup(spec->installation_id);
	if (!app->app_id || !app->installation_id)
		return err_nomem(err);
	r = read_url(app, spec->base_url, err);
	if (r == 0)
		r = read_permissions(app, spec->permissions, err);
	if (r == 0)
		r = read_repositories(app, spec->repositories, err);
	if (r == 0)
		r = read_key(app, spec->key, err);
	if (r == 0)
		*ret = TAKE_PTR(app);
	return r;
}

/* --- the token's request --- */

/* Add '.' and the signature of text, which may be a part of out. */
static int sign(const struct github_app *app, struct str text, struct buf *out)
{
	unsigned char signature[SIGNATURE_MAX];
	size_t n = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, app->key) == 1 &&
		  EVP_DigestSign(ctx, signature, &n, (const unsigned char *)text.p, text.n) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	if (!ok)
		return -EIO;
	return buf_add_char(out, '.') < 0 ? -ENOMEM : base64url_encode(out, str_make(signature, n));
}

/* RFC 7515 section 7.1. */
int github_app_jwt(const struct github_app *app, uint64_t now, struct buf *out)
{
	_cleanup_(buf_donep) struct buf claims = BUF_INIT(512);
	size_t start = buf_len(out);
	int r = buf_printf(&claims, "{\"iat\":%llu,\"exp\":%llu,\"iss\":\"%s\"}",
		(unsigned long long)now - 60, (unsigned long long)now + 540, app->app_id);

	if (r == 0)
		r = base64url_encode(out, STR("{\"alg\":\"RS256\",\"typ\":\"JWT\"}"));
	if (r == 0)
		r = buf_add_char(out, '.');
	if (r == 0)
		r = base64url_encode(out, buf_str(&claims));
	return r < 0 ? r : sign(app, str_from_index(buf_str(out), start), out);
}

int github_token_target(const struct github_app *app, struct buf *out)
{
	return buf_printf(
		out, "%s/app/installations/%s/access_tokens", app->path, app->installation_id);
}

int github_token_body(const struct github_app *app, struct buf *out)
{
	const char *sep = "";
	int r = buf_add_char(out, '{');

	if (r == 0 && app->permissions) {
		r = buf_printf(out, "\"permissions\":%s", app->permissions);
		sep = ",";
	}
	if (r == 0 && strv_count(app->repositories) > 0)
		r = buf_printf(out, "%s\"repositories\":[", sep);
	for (size_t i = 0; r == 0 && i < strv_count(app->repositories); i++)
		r = buf_printf(out, "%s\"%s\"", i ? "," : "", app->repositories[i]);
	if (r == 0 && strv_count(app->repositories) > 0)
		r = buf_add_char(out, ']');
	return r < 0 ? r : buf_add_char(out, '}');
}

int github_repositories_target(const struct github_app *app, unsigned page, struct buf *out)
{
	return buf_printf(out, "%s/installation/repositories?per_page=%d&page=%u", app->path,
		GITHUB_PAGE, page);
}

/* --- answers --- */

static int bad_answer(struct cloche_err *err)
{
	return err_set(err, E_PROTOCOL, "GitHub's answer is not what it documents");
}

static bool is_token(struct str s)
{
	return str_is_visible(s) && s.n >= 8 && s.n <= 4096;
}

int github_token_read(
	struct str body, struct secret **ret, uint64_t *ret_expires, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	struct str token;
	int64_t usec;

	if (json_text_read(body, JSON_REJECT_DUPLICATES, &o, NULL) < 0)
		return bad_answer(err);
	token = json_str_at(o, "token");
	if (!is_token(token) || parse_time(json_str_at(o, "expires_at"), &usec) < 0 || usec < 0)
		return bad_answer(err);
	*ret_expires = (uint64_t)usec / USEC_PER_SEC;
	*ret = secret_new(token.p, token.n);
	return *ret ? 0 : err_nomem(err);
}

static bool is_wanted(const struct github_app *app, struct str full_name)
{
	struct str bare = str_from_index(full_name, str_chr(full_name, '/') + 1);

	for (size_t i = 0; i < strv_count(app->repositories); i++)
		if (str_ieq(str_from(app->repositories[i]), bare))
			return true;
	return strv_count(app->repositories) == 0;
}

static struct github_repository repository_of(const json_t *item)
{
	json_int_t id = json_integer_value(json_object_get(item, "id"));

	return (struct github_repository){.full_name = json_str_at(item, "full_name"),
		.node_id = json_str_at(item, "node_id"),
		.id = id > 0 ? (uint64_t)id : 0};
}

int github_repositories_read(const struct github_app *app, struct str body,
	int (*add)(void *user, const struct github_repository *repository), void *user,
	unsigned *ret_n, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	json_t *list, *item;
	size_t i;

	if (json_text_read(body, JSON_REJECT_DUPLICATES, &o, NULL) < 0)
		return bad_answer(err);
	list = json_object_get(o, "repositories");
	if (!json_is_array(list))
		return bad_answer(err);
	json_array_foreach (list, i, item) {
		struct github_repository one = repository_of(item);
		struct str name = one.full_name;

		if (str_chr(name, '/') < name.n && is_wanted(app, name) &&
			add(user, &one) == -ENOMEM)
			return err_nomem(err);
	}
	*ret_n = (unsigned)json_array_size(list);
	return 0;
}
