/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The block in front of each entry: POSIX.1-2017, pax, "ustar Interchange Format". */

/* The letters of enum tar_type. */
#define TAR_LETTERS "0521634"

struct tar_header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char linkname[100];
	char magic[6]; /* "ustar" and a NUL; GNU's older form has a space for the NUL */
	char version[2];
	char uname[32];
	char gname[32];
	char devmajor[8];
	char devminor[8];
	char prefix[155];
	char rest[12];
};

_Static_assert(sizeof(struct tar_header) == 512, "one block");
