/* The commands whose work is done in this folder. Each takes what follows the program's name (argv[0] is the command)
 * and returns the exit status (flags.h). */
#ifndef MASKGRAD_EXPERIMENT_COMMANDS_H
#define MASKGRAD_EXPERIMENT_COMMANDS_H

/* lab [NAME|all] [options]: list the labs, or run one, or all of them. */
int mg_lab_command(int argc, char **argv);
/* bench [options]: how fast this build is here, beside what the machine can do. */
int mg_bench_command(int argc, char **argv);
/* compare RUN RUN...: runs side by side, in numbers and in one picture. */
int mg_compare_command(int argc, char **argv);

#endif
