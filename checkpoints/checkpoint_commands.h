/* The commands whose work is done in this folder. Each takes what follows the program's name (argv[0] is the command)
 * and returns the exit status (flags.h). */
#ifndef MASKGRAD_CHECKPOINT_COMMANDS_H
#define MASKGRAD_CHECKPOINT_COMMANDS_H

int mg_import_command(int argc, char **argv);
int mg_inspect_command(int argc, char **argv);

#endif
