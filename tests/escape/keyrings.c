/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: read keys of the person's, or leave some for him
 * Wall: seccomp hides keyrings; the session keyring is the room's own */
#include "attempt.h"

#include <linux/keyctl.h>

int main(void)
{
	static const int special[] = {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING,
		KEY_SPEC_USER_SESSION_KEYRING, KEY_SPEC_PROCESS_KEYRING};
	char keys[256];

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		REFUSED(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, special[i], 1));
		REFUSED(syscall(SYS_keyctl, KEYCTL_READ, special[i], keys, sizeof(keys)));
		REFUSED(syscall(SYS_add_key, "user", "escaped", "x", 1, special[i]));
	}
	REFUSED(syscall(SYS_request_key, "user", "escaped", NULL, KEY_SPEC_SESSION_KEYRING));
	REFUSED(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "escaped"));
	return verdict();
}
