/* A polite stop: the first SIGINT, SIGTERM or SIGHUP asks, the second ends the program at once with status 130.
 * Under nohup, SIGHUP stays ignored. */
#ifndef MASKGRAD_INTERRUPT_H
#define MASKGRAD_INTERRUPT_H

#include <stdbool.h>

void mg_interrupt_watch(void);
bool mg_interrupt_asked(void);

#endif
