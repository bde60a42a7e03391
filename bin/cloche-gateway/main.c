/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway.h"

int main(void)
{
	return gateway_program();
}
