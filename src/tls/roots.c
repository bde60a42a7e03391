/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the bundle is opened at start, when files may still be opened, and read when
 * the first chain has to be verified. Then each certificate is kept as DER with a view of its
 * subject. A chain names the issuer of its last certificate, so a comparison of names finds the
 * root, and only that one is turned into an X509 object. */
#include "tls/roots.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BUNDLE = 8 << 20 };

static const char *const places[] = {
	"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Alpine, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* newer ones */
	"/etc/ssl/ca-bundle.pem",                            /* openSUSE */
	"/etc/ssl/cert.pem",                                 /* Alpine, BSD */
};

struct root {
	struct str der, subject;
	bool provided;
};

struct tls_roots {
	int fd; /* open until the bundle was read */
	struct root *v;
	size_t n, cap;
	bool all; /* all roots were provided */
};

int tls_roots_open(struct tls_roots **ret, struct cloche_err *err)
{
	const char *named = secure_getenv("SSL_CERT_FILE");
	_cleanup_(tls_roots_freep) struct tls_roots *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err);
	r->fd = -1;
	if (named && *named) {
		r->fd = open(named, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (r->fd < 0)
			return err_sys(err, errno, "SSL_CERT_FILE %s", named);
	}
	for (size_t i = 0; r->fd < 0 && i < ARRAY_SIZE(places); i++)
		r->fd = open(places[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
	*ret = TAKE_PTR(r);
	return 0;
}

struct tls_roots *tls_roots_free(struct tls_roots *r)
{
	if (r) {
		fd_close(r->fd);
		for (size_t i = 0; i < r->n; i++)
			free((void *)(uintptr_t)r->v[i].der.p);
		free(r->v);
		free(r);
	}
	return NULL;
}

/* Move *p past its first element, whose tag must be `tag`, and set *content to the contents of that
 * element (unless content is NULL). */
static bool element(struct str *p, int tag, struct str *content)
{
	const unsigned char *at = (const unsigned char *)p->p, *start = at;
	int got, class;
	long len;

	if (p->n == 0 || p->n > INT32_MAX ||
		(ASN1_get_object(&at, &len, &got, &class, (long)p->n) & 0x80) || got != tag)
		return false;
	if (content)
		*content = str_make(at, (size_t)len);
	*p = str_from_index(*p, (size_t)(at - start) + (size_t)len);
	return true;
}

/* The encoded subject of a certificate (RFC 5280 4.1), or the null view. */
static struct str find_subject(struct str der)
{
	struct str cert, tbs, before;

	if (!element(&der, V_ASN1_SEQUENCE, &cert) || !element(&cert, V_ASN1_SEQUENCE, &tbs))
		return STR_NULL;
	if (tbs.n && (unsigned char)tbs.p[0] == 0xa0 && !element(&tbs, 0, &before))
		return STR_NULL;
	if (!element(&tbs, V_ASN1_INTEGER, NULL) || !element(&tbs, V_ASN1_SEQUENCE, NULL) ||
		!element(&tbs, V_ASN1_SEQUENCE, NULL) || !element(&tbs, V_ASN1_SEQUENCE, NULL))
		return STR_NULL;
	before = tbs;
	if (!element(&tbs, V_ASN1_SEQUENCE, NULL))
		return STR_NULL;
	return str_prefix(before, (size_t)(tbs.p - before.p));
}

static int keep(void *arg, struct str der)
{
	struct tls_roots *r = arg;
	struct root root = {0}, *v = array_room(r->v, r->n, &r->cap, sizeof(*v));
	char *copy;

	if (!v)
		return -ENOMEM;
	r->v = v;
	copy = str_dup(der);
	if (!copy)
		return -ENOMEM;
	root.der = str_make(copy, der.n);
	root.subject = find_subject(root.der);
	r->v[r->n++] = root;
	return 0;
}

int tls_pem_each(struct str pem, int (*each)(void *arg, struct str der), void *arg)
{
	BIO *bio = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
	int count = 0, r = 0;

	if (!bio)
		return -ENOMEM;
	while (r == 0) {
		char *name = NULL, *header = NULL;
		unsigned char *data = NULL;
		long n = 0;

		if (PEM_read_bio(bio, &name, &header, &data, &n) != 1) {
			/* No further block is the normal end. */
			unsigned long why = ERR_peek_last_error();

			if (ERR_GET_REASON(why) != PEM_R_NO_START_LINE)
				r = -EINVAL;
			break;
		}
		if (strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0) {
			count++;
			r = each(arg, str_make(data, (size_t)n));
		}
		OPENSSL_free(name);
		OPENSSL_free(header);
		OPENSSL_free(data);
	}
	ERR_clear_error();
	BIO_free(bio);
	return r < 0 ? r : count;
}

static void read_bundle(struct tls_roots *r)
{
	struct buf text = BUF_INIT(MAX_BUNDLE);

	if (r->fd < 0)
		return;
	/* A bundle that cannot be read is not trusted: verification fails then, and says so. */
	if (fd_read_to_end(r->fd, &text) == 0)
		(void)tls_pem_each(buf_str(&text), keep, r);
	buf_done(&text);
	r->fd = fd_close(r->fd);
}

int tls_roots_add(void *store, struct str der)
{
	const unsigned char *p = (const unsigned char *)der.p;
	X509 *x = d2i_X509(NULL, &p, (long)der.n);
	int ok = x && X509_STORE_add_cert(store, x) == 1;

	X509_free(x);
	return ok ? 0 : -EINVAL;
}

static void provide(struct root *root, X509_STORE *store)
{
	if (!root->provided)
		(void)!tls_roots_add(store, root->der);
	root->provided = true;
}

static struct str name_der(const X509_NAME *name)
{
	const unsigned char *p;
	size_t n;

	return X509_NAME_get0_der(name, &p, &n) == 1 ? str_make(p, n) : STR_NULL;
}

/* Whether the issuer is one of the certificates that the peer sent along. */
static bool came_along(X509 *x, struct str issuer, const STACK_OF(X509) * untrusted)
{
	for (int i = 0; i < sk_X509_num(untrusted); i++) {
		X509 *other = sk_X509_value(untrusted, i);

		if (other != x && str_eq(name_der(X509_get_subject_name(other)), issuer))
			return true;
	}
	return false;
}

/* Whether the store has the issuer already: provided before, or given by the user. */
static bool is_stored(X509_STORE_CTX *ctx, const X509_NAME *issuer)
{
	X509_OBJECT *o = X509_STORE_CTX_get_obj_by_subject(ctx, X509_LU_X509, issuer);
	bool stored = o != NULL;

	X509_OBJECT_free(o);
	return stored;
}

/* Provide the roots that may have issued x. Return whether its issuer was found at all. */
static bool provide_issuer(
	struct tls_roots *r, X509_STORE_CTX *ctx, X509 *x, const STACK_OF(X509) * untrusted)
{
	const X509_NAME *name = X509_get_issuer_name(x);
	struct str issuer = name_der(name);
	bool found = false;

	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].subject.n && str_eq(r->v[i].subject, issuer)) {
			provide(&r->v[i], X509_STORE_CTX_get0_store(ctx));
			found = true;
		}
	}
	return found || came_along(x, issuer, untrusted) || is_stored(ctx, name);
}

void tls_roots_provide(struct tls_roots *r, X509_STORE_CTX *ctx)
{
	const STACK_OF(X509) *untrusted = X509_STORE_CTX_get0_untrusted(ctx);
	bool found;

	if (r->all)
		return;
	read_bundle(r);
	found = provide_issuer(r, ctx, X509_STORE_CTX_get0_cert(ctx), untrusted);
	for (int i = 0; i < sk_X509_num(untrusted); i++)
		found &= provide_issuer(r, ctx, sk_X509_value(untrusted, i), untrusted);
	if (found)
		return;
	for (size_t i = 0; i < r->n; i++)
		provide(&r->v[i], X509_STORE_CTX_get0_store(ctx));
	ERR_clear_error();
	r->all = true;
}
