/* A polite stop, from the moment that there is something to save: the first SIGINT, SIGTERM or SIGHUP asks, and says
 * so; the second ends the program at once with status 130. Under nohup, SIGHUP stays ignored. A reader of the output
 * that goes away (SIGPIPE) asks for the same stop. */
#ifndef MASKGRAD_INTERRUPT_H
#define MASKGRAD_INTERRUPT_H

#include "evaluation.h"

/* `doing` is what it then prints: "finishing the step"; NULL: nothing. */
void mg_interrupt_watch(const char *doing);
bool mg_interrupt_asked(void);
mg_stop mg_interrupt_stop(void);   /* the same, for what is asked between two steps or batches */
bool mg_interrupt_by_reader(void); /* it was a reader that went away */

#endif
