/* What colors mean on a terminal. Whether it shows any, the command knows: mg_terminal_color. */
#ifndef MASKGRAD_COLOR_H
#define MASKGRAD_COLOR_H

#define MG_COLOR_PASS "\033[32m"
#define MG_COLOR_FAIL "\033[1;31m"
#define MG_COLOR_UNDECIDED "\033[33m"
#define MG_COLOR_BOLD "\033[1m"
#define MG_COLOR_OFF "\033[0m"

#endif
