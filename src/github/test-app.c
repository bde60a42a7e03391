/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "github/app.h"
#include "tap.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

static EVP_PKEY *key;
static char *pem8, *pem1, *ec_pem;
static const uint64_t now = 1700000000;

static char *text_of(BIO *bio)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);
	char *text = str_dup(str_make(p, (size_t)n));

	BIO_free(bio);
	return text;
}

static void make_keys(void)
{
	BIO *bio = BIO_new(BIO_s_mem());
	EVP_PKEY *ec = EVP_EC_gen("P-256");

	key = EVP_RSA_gen(2048);
	must(key && ec);
	must(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
	pem8 = text_of(bio);
	bio = BIO_new(BIO_s_mem());
	must(PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
	pem1 = text_of(bio);
	bio = BIO_new(BIO_s_mem());
	must(PEM_write_bio_PrivateKey(bio, ec, NULL, NULL, 0, NULL, NULL) == 1);
	ec_pem = text_of(bio);
	EVP_PKEY_free(ec);
}

static struct github_app_spec good(void)
{
	return (struct github_app_spec){.app_id = STR("12345"),
		.installation_id = STR("67"),
		.key = str_from(pem8),
		.base_url = STR("https://api.github.com/")};
}

static struct github_app *make(const struct github_app_spec *spec)
{
	struct github_app *app = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(github_app_new(spec, &app, &err) == 0);
	return app;
}

static void refused(const struct github_app_spec *spec, const char *why)
{
	struct github_app *app = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(github_app_new(spec, &app, &err), -E_CONFIG);
	check(!app && strstr(err.message, why));
	check(!strstr(err.message, "PRIVATE KEY"));
}

static void test_both_forms_of_a_key(void)
{
	struct github_app_spec spec = good();

	github_app_free(make(&spec));
	spec.key = str_from(pem1);
	github_app_free(make(&spec));
}

static void test_what_is_refused(void)
{
	struct github_app_spec spec = good();
	char fine[] = "fine", full[] = "owner/name", *names[] = {fine, full, NULL};

	spec.key = str_from(ec_pem);
	refused(&spec, "RSA");
	spec.key = STR("no key");
	refused(&spec, "RSA");
	spec = good();
	spec.base_url = STR("http://api.github.com");
	refused(&spec, "https");
	spec.base_url = STR("https://api.github.com/v3?x=1");
	refused(&spec, "https");
	spec = good();
	spec.installation_id = STR("6/../7");
	refused(&spec, "ids");
	spec.installation_id = STR("6\0007");
	refused(&spec, "ids");
	spec = good();
	spec.permissions = STR("{\"contents\":\"read\",\"contents\":\"write\"}");
	refused(&spec, "permissions");
	spec.permissions = STR("{\"contents\":1}");
	refused(&spec, "permission");
	spec = good();
	spec.repositories = names;
	refused(&spec, "bare names");
}

/* base64url without padding, by OpenSSL's decoder of the common form. */
static void decode(struct str part, struct buf *out)
{
	char text[4096];
	size_t n = part.n;
	char *at;

	must(n + 4 < sizeof(text));
	for (size_t i = 0; i < n; i++)
		text[i] = part.p[i] == '-' ? '+' : part.p[i] == '_' ? '/' : part.p[i];
	while (n % 4)
		text[n++] = '=';
	must(buf_reserve(out, n, &at) == 0);
	must(EVP_DecodeBlock((unsigned char *)at, (unsigned char *)text, (int)n) > 0);
	buf_commit(out, part.n * 3 / 4);
}

static void test_a_token_is_signed(void)
{
	_cleanup_(buf_donep) struct buf jwt = BUF_INIT(4096), claims = BUF_INIT(4096),
					sig = BUF_INIT(4096);
	struct github_app_spec spec = good();
	struct github_app *app = make(&spec);
	struct str all, rest;
	size_t first, second;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	_cleanup_json_ json_t *o = NULL;

	check_int(github_app_jwt(app, now, &jwt), 0);
	all = buf_str(&jwt);
	first = str_chr(all, '.');
	rest = str_from_index(all, first + 1);
	second = first + 1 + str_chr(rest, '.');
	must(second < all.n);
	decode(str_prefix(rest, second - first - 1), &claims);
	decode(str_from_index(all, second + 1), &sig);
	must(json_text_read(buf_str(&claims), 0, &o, NULL) == 0);
	check_str(json_str_at(o, "iss"), "12345");
	check(json_integer_value(json_object_get(o, "iat")) == (json_int_t)now - 60);
	check(json_integer_value(json_object_get(o, "exp")) == (json_int_t)now + 540);
	must(ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1);
	check(EVP_DigestVerify(ctx, (unsigned char *)buf_data(&sig), buf_len(&sig),
		      (const unsigned char *)all.p, second) == 1);
	EVP_MD_CTX_free(ctx);
	github_app_free(app);
}

static void test_requests(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
	char one[] = "one", two[] = "two", *names[] = {one, two, NULL};
	struct github_app_spec spec = good();
	struct github_app *app = make(&spec);

	check_int(github_token_target(app, &out), 0);
	check_str(buf_str(&out), "/app/installations/67/access_tokens");
	buf_clear(&out);
	check_int(github_token_body(app, &out), 0);
	check_str(buf_str(&out), "{}");
	github_app_free(app);
	spec.base_url = STR("https://ghe.example:8443/api/v3");
	spec.permissions = STR("{ \"issues\": \"write\", \"contents\": \"read\" }");
	spec.repositories = names;
	app = make(&spec);
	check_int(github_app_port(app), 8443);
	check_str(host_str(github_app_host(app)), "ghe.example");
	buf_clear(&out);
	check_int(github_token_body(app, &out), 0);
	check_str(buf_str(&out), "{\"permissions\":{\"contents\":\"read\",\"issues\":\"write\"},"
				 "\"repositories\":[\"one\",\"two\"]}");
	buf_clear(&out);
	check_int(github_repositories_target(app, 3, &out), 0);
	check_str(buf_str(&out), "/api/v3/installation/repositories?per_page=100&page=3");
	github_app_free(app);
}

static void test_answers(void)
{
	struct secret *token = NULL;
	uint64_t expires = 0;

	check_int(github_token_read(STR("{\"token\":\"ghs_16C7e42F292c6912E7710c838347Ae178B4a\","
					"\"expires_at\":\"2016-07-11T22:14:10Z\"}"),
			  &token, &expires, NULL),
		0);
	check_str(secret_reveal(token), "ghs_16C7e42F292c6912E7710c838347Ae178B4a");
	check_int(expires, 1468275250);
	secret_free(token);
	token = NULL;
	check_int(github_token_read(STR("{\"token\":\"ghs_16C7e42F292c6912E7710c838347Ae178B4a\","
					"\"expires_at\":\"2016-07-12T00:14:10.9+02:00\"}"),
			  &token, &expires, NULL),
		0);
	check_int(expires, 1468275250);
	secret_free(token);
	token = NULL;
	check(github_token_read(STR("{\"token\":\"ghs_16C7e42F292c6912E7710c8383\"}"), &token,
		      &expires, NULL) < 0);
	check(github_token_read(STR("{\"token\":\"a\\r\\nX: y12345\","
				    "\"expires_at\":\"2016-07-11T22:14:10Z\"}"),
		      &token, &expires, NULL) < 0);
	check(github_token_read(STR("[]"), &token, &expires, NULL) < 0 && !token);
}

static int count(void *user, const struct github_repository *one)
{
	*(unsigned *)user += one->full_name.n > 0 && one->id > 0;
	return one->id > 0 ? 0 : -EINVAL;
}

static void test_repositories(void)
{
	static const char page[] = "{\"total_count\":2,\"repositories\":["
				   "{\"id\":1,\"node_id\":\"R_kgAB\",\"full_name\":\"o/One\"},"
				   "{\"id\":2,\"node_id\":\"R_kgAC\",\"full_name\":\"o/other\"}]}";
	char one[] = "one", *names[] = {one, NULL};
	struct github_app_spec spec = good();
	struct github_app *app = make(&spec);
	unsigned seen = 0, n = 0;

	check_int(github_repositories_read(app, str_from(page), count, &seen, &n, NULL), 0);
	check(n == 2 && seen == 2);
	github_app_free(app);
	spec.repositories = names;
	app = make(&spec);
	seen = 0;
	check_int(github_repositories_read(app, str_from(page), count, &seen, &n, NULL), 0);
	check(n == 2 && seen == 1);
	check(github_repositories_read(app, STR("{}"), count, &seen, &n, NULL) < 0);
	github_app_free(app);
}

/* What cannot be read costs only itself. */
static void test_entries_that_cannot_be_read(void)
{
	static const char page[] =
		"{\"repositories\":[{\"id\":1},{\"id\":2,\"full_name\":\"bare\"},null,5,"
		"{\"id\":\"3\",\"full_name\":\"o/text\"},{\"id\":-4,\"full_name\":\"o/less\"},"
		"{\"id\":5,\"node_id\":6,\"full_name\":\"o/fine\"}]}";
	struct github_app_spec spec = good();
	struct github_app *app = make(&spec);
	unsigned seen = 0, n = 0;

	check_int(github_repositories_read(app, str_from(page), count, &seen, &n, NULL), 0);
	check(n == 7 && seen == 1);
	github_app_free(app);
}

int main(void)
{
	make_keys();
	run_test(test_both_forms_of_a_key);
	run_test(test_what_is_refused);
	run_test(test_a_token_is_signed);
	run_test(test_requests);
	run_test(test_answers);
	run_test(test_repositories);
	run_test(test_entries_that_cannot_be_read);
	EVP_PKEY_free(key);
	free(pem8);
	free(pem1);
	free(ec_pem);
	return tap_done();
}
