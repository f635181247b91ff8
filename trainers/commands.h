/* The commands whose work is done in this folder. Each takes what follows the program's name (argv[0] is the command)
 * and returns the exit status: 0 done, 1 a check failed or the work failed, 2 wrong usage, 130 interrupted. */
#ifndef MASKGRAD_COMMANDS_H
#define MASKGRAD_COMMANDS_H

int mg_command_train(int argc, char **argv);
int mg_command_generate(int argc, char **argv);
int mg_command_evaluate(int argc, char **argv);
int mg_command_logits(int argc, char **argv);
int mg_command_compare(int argc, char **argv);

#endif
