/* What a program needs from the system before it does anything. */
#ifndef MASKGRAD_STARTUP_H
#define MASKGRAD_STARTUP_H

/* Standard descriptors that are closed become /dev/null, so that no file of ours gets their numbers. The stack limit is
 * raised as far as it may be; one that is too small ends the program with a sentence and status 1. Linking this file
 * also keeps OpenBLAS from waiting for memory forever. */
void mg_startup(void);

#endif
