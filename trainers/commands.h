/* The commands whose work is done in this folder. Each takes what follows the program's name (argv[0] is the command)
 * and returns the exit status (flags.h). */
#ifndef MASKGRAD_COMMANDS_H
#define MASKGRAD_COMMANDS_H

int mg_train_command(int argc, char **argv);
int mg_generate_command(int argc, char **argv);
int mg_evaluate_command(int argc, char **argv);
int mg_logits_command(int argc, char **argv);

#endif
