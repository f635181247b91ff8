/* The list of commands for other programs to run. */
#include "atomic_file.h"
#include "sweep.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static mg_status check_words(char *const *words, mg_error *error) {
    for (int i = 0; words[i]; i++)
        if (strchr(words[i], '\n'))
            return mg_error_set(error, MG_ERR_INPUT,
                                "'%s' has a line end, and jobs.txt has one command per line: rename or link the file",
                                words[i]);
    return MG_OK;
}

static mg_status print_jobs(const mg_sweep_plan *plan, int threads, FILE *out, mg_error *error) {
    for (int run = 0; run < plan->n; run++) {
        mg_arena_mark mark = mg_arena_here(plan->grid->arena);
        char **words = mg_sweep_words(plan, run, threads);
        mg_status status = check_words(words, error);
        if (status == MG_OK) mg_sweep_print_command(out, words);
        mg_arena_rewind(plan->grid->arena, mark);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

/* An array job: task N runs line N. Slurm's SIGTERM, a minute before the time is up, makes a run save; it continues
 * when the array is submitted again. */
static mg_status print_template(const mg_sweep_plan *plan, int threads, FILE *out, mg_error *error) {
    char here[4096];
    if (!getcwd(here, sizeof here)) return mg_error_set(error, MG_ERR_IO, "no current folder: %s", strerror(errno));
    if (strchr(here, '\n') || strchr(plan->out_dir, '\n'))
        return mg_error_set(error, MG_ERR_INPUT, "the folder %s has a line end in its name, or %s has", here,
                            plan->out_dir);
    fprintf(
        out,
        "#!/bin/bash\n"
        "# Submit with: sbatch %s/jobs.sbatch\n"
        "# Tasks that are stopped continue when it is submitted again. Add what your cluster asks for: a partition,\n"
        "# an account, memory.\n"
        "#SBATCH --job-name=maskgrad\n"
        "#SBATCH --array=1-%d\n"
        "#SBATCH --cpus-per-task=%d\n"
        "#SBATCH --time=01:00:00\n"
        "#SBATCH --signal=B:TERM@60\n"
        "#SBATCH --chdir=%s\n"
        "#SBATCH --output=%s/output/slurm-%%A_%%a.txt\n\n"
        "exec bash -c \"$(sed -n \"${SLURM_ARRAY_TASK_ID}p\" ",
        plan->out_dir, plan->n, threads > 0 ? threads : 1, here, plan->out_dir);
    char jobs[4200];
    snprintf(jobs, sizeof jobs, "%s/jobs.txt", plan->out_dir);
    mg_sweep_print_word(out, jobs);
    fputs(")\"\n", out);
    return MG_OK;
}

static mg_status write_file(const mg_sweep_plan *plan, int threads, const char *name,
                            mg_status (*print)(const mg_sweep_plan *, int, FILE *, mg_error *), mg_error *error) {
    char path[4200];
    mg_atomic_text file;
    snprintf(path, sizeof path, "%s/%s", plan->out_dir, name);
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status != MG_OK) return status;
    status = print(plan, threads, file.out, error);
    return mg_atomic_text_finish(&file, status, error);
}

mg_status mg_sweep_write_jobs(const mg_sweep_plan *plan, int threads, mg_error *error) {
    mg_status status = mg_sweep_make_folders(plan, error);
    if (status == MG_OK) status = write_file(plan, threads, "jobs.txt", print_jobs, error);
    if (status == MG_OK) status = write_file(plan, threads, "jobs.sbatch", print_template, error);
    return status;
}
