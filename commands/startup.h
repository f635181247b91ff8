/* What a program needs from the system before it does anything, and where it is. */
#ifndef MASKGRAD_STARTUP_H
#define MASKGRAD_STARTUP_H

#include <stddef.h>

/* Standard descriptors that are closed become /dev/null, so that no file of ours gets their numbers. The stack limit is
 * raised as far as it may be; one that is too small ends the program with a sentence and status 1. Linking this file
 * also keeps OpenBLAS from waiting for memory forever. */
void mg_startup(void);

/* The program's own file; "": it cannot be found, and errno says why. */
void mg_program_path(char *path, size_t size);
/* The folder that it is in; with `up`, so many folders above that: 1 is the prefix of an installed program. */
void mg_program_folder(int up, char *path, size_t size);

#endif
