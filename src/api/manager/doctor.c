/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job.h"
#include "provider/provider.h"
#include <cloche/doctor.h>

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
			 : p->required ? CLOCHE_CHECK_MISSING
				       : CLOCHE_CHECK_DEGRADED,
		.detail = p->detail,
		.advice = p->remedy};

	if (check.state == CLOCHE_CHECK_MISSING)
		d->broken = 1;
	call_check_fn(d->fn, &check, d->user);
}

int cloche_doctor(void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err)
{
	struct doctor d = {fn, user, 0};
	const struct provider *p;
	struct provider_about about;
	const char *name;

	for (size_t i = 0; (name = provider_name_at(i)); i++) {
		p = provider_find(str_from(name), NULL);
		if (p && p->doctor)
			p->doctor(doctor_tell, &d);
	}
	/* Where native does not work, low walls can be had. */
	p = provider_find(STR(PROVIDER_LANDLOCK), NULL);
	return d.broken && provider_about(p, &about, NULL) < 0;
}
