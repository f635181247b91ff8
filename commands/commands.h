/* The commands: one file per command, which defines one of these, and main.c's table of them. */
#ifndef MASKGRAD_COMMANDS_H
#define MASKGRAD_COMMANDS_H

typedef struct mg_command {
    const char *name, *help; /* one line */
    /* argv[0] is the command's name. Returns the exit status (flags.h). */
    int (*run)(int argc, char **argv);
} mg_command;

extern const mg_command mg_train_command;
extern const mg_command mg_generate_command;
extern const mg_command mg_evaluate_command;
extern const mg_command mg_logits_command;
extern const mg_command mg_sweep_command;
extern const mg_command mg_compare_command;
extern const mg_command mg_inspect_command;
extern const mg_command mg_import_command;
extern const mg_command mg_export_command;
extern const mg_command mg_lab_command;
extern const mg_command mg_audit_command;
extern const mg_command mg_bench_command;
extern const mg_command mg_playground_command;

#endif
