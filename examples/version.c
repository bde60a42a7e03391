/* SPDX-License-Identifier: Apache-2.0 */
/* Says which version of the library is in use. */
#include <cloche/version.h>
#include <stdio.h>

int main(void)
{
	printf("libcloche %s\n", cloche_version());
	return 0;
}
