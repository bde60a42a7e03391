/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack/unpack.h"

int main(int argc, char **argv)
{
	return unpack_program(argc, argv);
}
