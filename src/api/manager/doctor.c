/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "job/job.h"
#include "policy/proxy.h"
#include "provider/provider.h"
#include <cloche/doctor.h>

#include <string.h>
#include <unistd.h>

enum { PROXIES_TEXT_MAX = 1024 };

typedef void (*doctor_fn)(const cloche_check *check, void *user);
JOB_TELL1(call_check_fn, doctor_fn, const cloche_check *)

struct doctor {
	doctor_fn fn;
	void *user;
	int broken;
};

static void doctor_tell(void *user, const struct provider_check *p)
{
	struct doctor *d = user;
	cloche_check check = {.name = p->name,
		.state = p->works      ? CLOCHE_CHECK_OK
			 : p->unknown  ? CLOCHE_CHECK_UNKNOWN
			 : p->required ? CLOCHE_CHECK_MISSING
				       : CLOCHE_CHECK_DEGRADED,
		.detail = p->detail,
		.advice = p->remedy};

	if (check.state == CLOCHE_CHECK_MISSING)
		d->broken = 1;
	call_check_fn(d->fn, &check, d->user);
}

static int add_proxy(struct buf *out, const char *scheme, const struct proxy *p)
{
	if (p->port == 0)
		return buf_printf(out, "%s directly", scheme);
	return buf_printf(out, "%s through %s:%u%s", scheme, p->host.text, p->port,
		p->login ? " (with a user)" : "");
}

/* Say through which proxies the broker goes for the sandboxes of this environment; the password is
 * never shown. */
static void doctor_tell_proxies(struct doctor *d)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(PROXIES_TEXT_MAX);
	_cleanup_(proxies_donep) struct proxies p = {0};
	const struct proxy_settings s = proxy_settings_from(environ);
	struct cloche_err err = CLOCHE_ERR_INIT;
	cloche_check check = {.name = "upstream proxy",
		.state = CLOCHE_CHECK_OK,
		.detail = "none: requests of sandboxes go out directly",
		.advice = ""};

	if (proxies_set(&p, &s, &err) < 0) {
		check.state = CLOCHE_CHECK_DEGRADED;
		check.detail = err.message;
		check.advice = err.hint;
	} else if (p.https.port || p.http.port) {
		int r = add_proxy(&text, "https", &p.https);

		if (r == 0)
			r = buf_add_str(&text, STR(", "));
		if (r == 0)
			r = add_proxy(&text, "http", &p.http);
		if (r == 0 && s.none.n > 0)
			r = buf_add_str(&text, STR("; without one to hosts of NO_PROXY"));
		check.detail = r == 0 && buf_cstr(&text) ? buf_data(&text) : "out of memory";
	}
	call_check_fn(d->fn, &check, d->user);
}

static int doctor_here(struct doctor *d)
{
	const struct provider *p;
	struct provider_about about;
	const char *name;

	for (size_t i = 0; (name = provider_name_at(i)); i++) {
		p = provider_find(str_from(name), NULL);
		if (p && p->doctor)
			p->doctor(doctor_tell, d);
	}
	doctor_tell_proxies(d);
	/* Where native does not work, low walls can be had. */
	p = provider_find(STR(PROVIDER_LANDLOCK), NULL);
	return d->broken && provider_about(p, &about, NULL) < 0;
}

int cloche_doctor(const char *provider, const char *place,
	void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err)
{
	struct doctor d = {fn, user, 0};
	const struct provider *p;
	const char *name;
	int r;

	if (!place)
		return doctor_here(&d);
	r = provider_name_choose(provider, &name, err);
	if (r < 0)
		return r;
	if (!room_place_is_name(str_from(place)))
		return err_set(err, E_USAGE,
			"--place: use up to %d bytes without control characters", ROOM_PLACE_MAX);
	if (strcmp(name, "auto") == 0 || strcmp(name, PROVIDER_AUTO_OR_NONE) == 0)
		return err_set(err, E_USAGE, "--provider has to say what makes rooms at %s", place);
	p = provider_find(str_from(name), err);
	if (!p)
		return -E_NOT_FOUND;
	r = provider_doctor_place(p, place, doctor_tell, &d, err);
	return r < 0 ? r : d.broken;
}
