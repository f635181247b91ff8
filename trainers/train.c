/* The command `train`: what is asked, the folder, the data, and where the run starts from. */
#include "commands.h"
#include "gemm.h"
#include "parallel.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const mg_command_line line = {
    .name = "train",
    .doc = "Train a GPT on a text, a CSV or a grammar, and keep the run in a folder.\v"
           "Ctrl-C finishes the step and saves; --resume goes on, bit for bit, with the settings of the run.\n\n"
           "  maskgrad train --data datasets/data/frases.csv\n"
           "  maskgrad train --data datasets/data/frases.csv --mask none",
};

/* What the command needs beside the run itself. */
typedef struct start {
    bool resume;
    mg_run_json *stored;   /* the resumed run's settings */
    mg_checkpoint weights; /* of the resumed run, or of --init-from FILE */
    bool has_weights;
} start;

static void parse(mg_run_options *options, int argc, char **argv) {
    const mg_flag_table tables[] = {
        {mg_data_flags, options},    {mg_model_flags, options},
        {mg_lesson_flags, options},  {mg_training_flags, options},
        {mg_keeping_flags, options}, {mg_machine_flags, options},
        {mg_folder_flags, options},  {NULL, NULL},
    };
    mg_flags_parse(&line, tables, argc, argv, NULL);
}

static mg_status name_folder(mg_run *run, const mg_run_options *asked, mg_error *error) {
    char path[4096];
    if (!asked->out_dir && !asked->data.path)
        mg_usage_error(&line, "%s",
                       strcmp(asked->init_from, "resume") == 0
                           ? "--resume needs --out-dir, the folder of the run to go on with"
                           : "--data FILE is missing: a text, a CSV or a grammar to train on");
    if (asked->out_dir && !asked->out_dir[0]) mg_usage_error(&line, "--out-dir is empty: name a folder");
    if (asked->out_dir)
        snprintf(path, sizeof path, "%s", asked->out_dir);
    else
        mg_run_default_dir(asked, path, sizeof path);
    return mg_run_dir_name(&run->dir, path, error);
}

/* ---- Going on ---- */

/* The flag that differs, as the command line spells it: two set the lookahead. */
static const mg_flag *as_given(const mg_flag *flag, int argc, char **argv) {
    if (strcmp(flag->name, "lookahead") != 0) return flag;
    const mg_flag *mask = mg_lesson_flags;
    while (!mask->name || strcmp(mask->name, "mask") != 0) mask++;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--mas", 5) == 0) return mask; /* no shorter abbreviation is unique */
    return flag;
}

static mg_status check_resumed(const mg_run_options *stored, const mg_run_options *now, const mg_run_dir *dir, int argc,
                               char **argv, mg_error *error) {
    const mg_flag *flag = mg_run_options_conflict(stored, now);
    if (!flag) return MG_OK;
    flag = as_given(flag, argc, argv);
    char was[4096], is[4096];
    mg_flag_format(flag, stored, was, sizeof was);
    mg_flag_format(flag, now, is, sizeof is);
    return mg_error_set(error, MG_ERR_INPUT,
                        "--%s: the run in %s was begun with '%.200s', which a resumed run keeps, and not '%.200s'",
                        flag->name, dir->path, was, is);
}

/* The stored settings, with what the command line says on top of them. */
static mg_status resume_settings(mg_run *run, start *from, int argc, char **argv, mg_error *error) {
    if (access(run->dir.run_json, F_OK) != 0)
        return mg_error_set(error, MG_ERR_INPUT, "there is no run to resume in %s: it has no run.json", run->dir.path);
    mg_run_options stored;
    mg_status status = mg_run_dir_lock(&run->dir, error);
    if (status == MG_OK) status = mg_run_json_read(&from->stored, run->dir.run_json, &stored, error);
    if (status != MG_OK) return status;
    run->options = stored;
    parse(&run->options, argc, argv);
    mg_run_options_resolve(&run->options);
    status = check_resumed(&stored, &run->options, &run->dir, argc, argv, error);
    if (status != MG_OK || access(run->dir.checkpoint, F_OK) != 0) return status;
    status = mg_checkpoint_load(run->dir.checkpoint, true, &from->weights, error);
    from->has_weights = status == MG_OK;
    return status;
}

static mg_status resume_trainer(mg_run *run, const start *from, mg_error *error) {
    uint64_t hash = mg_run_json_data_hash(from->stored);
    if (run->corpus->hash != hash)
        return mg_error_set(error, MG_ERR_INPUT,
                            "the data %s is not what the run in %s was begun with: its hash is %016" PRIx64
                            ", then it was %016" PRIx64,
                            run->options.data.path, run->dir.path, run->corpus->hash, hash);
    if (!from->has_weights) {
        fprintf(stderr, "maskgrad train: no checkpoint was saved in %s yet: the run begins at step 0\n", run->dir.path);
        return MG_OK;
    }
    mg_status status = mg_trainer_restore(run->trainer, &from->weights, error);
    if (status != MG_OK) return status;
    run->saved_step = mg_trainer_steps_done(run->trainer);
    if (run->saved_step > run->options.train.max_iters)
        return mg_error_set(error, MG_ERR_INPUT, "--max-iters %" PRId64 ": the run in %s has done %s already",
                            run->options.train.max_iters, run->dir.path, mg_count(run->saved_step, "step").text);
    fprintf(stderr, "maskgrad train: going on at step %" PRId64 " of %" PRId64 "\n", run->saved_step,
            run->options.train.max_iters);
    return MG_OK;
}

/* ---- Beginning ---- */

static mg_status refuse_overwriting(const mg_run *run, mg_error *error) {
    if (run->options.force || !mg_run_dir_holds_run(&run->dir)) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT,
                        "%s already holds a run: --resume goes on with it, --force replaces it, and --out-dir chooses "
                        "another folder",
                        run->dir.path);
}

/* Once all else is in order: nothing is made or removed for a run that cannot begin. */
static mg_status make_room(mg_run *run, mg_error *error) {
    mg_status status = mg_run_dir_lock(&run->dir, error);
    if (status == MG_OK) status = refuse_overwriting(run, error);
    if (status != MG_OK) return status;
    const char *const files[] = {run->dir.checkpoint, run->dir.log, run->dir.position, run->dir.samples,
                                 run->dir.run_json};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
    return MG_OK;
}

/* The model of --init-from FILE is the file's; flags may change its mask, not its sizes. */
static mg_status weights_settings(mg_run *run, start *from, int argc, char **argv, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(run->options.init_from, path, sizeof path);
    mg_status status = mg_checkpoint_load(path, false, &from->weights, error);
    if (status != MG_OK) return status;
    from->has_weights = true;
    if (!from->weights.tokenizer)
        return mg_error_set(error, MG_ERR_INPUT, "%s has no tokenizer: it cannot read a text", path);
    mg_run_options stored = mg_run_defaults();
    stored.train.model = *mg_gpt_get_config(from->weights.gpt);
    run->options = stored;
    parse(&run->options, argc, argv);
    const mg_gpt_config *file = &stored.train.model, *asked = &run->options.train.model;
    if (file->n_layer != asked->n_layer || file->n_head != asked->n_head || file->n_embd != asked->n_embd ||
        file->block_size != asked->block_size || file->output_projection != asked->output_projection)
        return mg_error_set(error, MG_ERR_INPUT,
                            "the model in %s has --n-layer %d --n-head %d --n-embd %d --block-size %d%s, which a run "
                            "that starts from it keeps",
                            path, file->n_layer, file->n_head, file->n_embd, file->block_size,
                            file->output_projection ? "" : " --no-output-projection");
    return MG_OK;
}

static mg_status settings(mg_run *run, start *from, int argc, char **argv, mg_error *error) {
    mg_run_options asked = mg_run_defaults();
    parse(&asked, argc, argv);
    run->options = asked;
    from->resume = strcmp(asked.init_from, "resume") == 0;
    if (from->resume && asked.force)
        mg_usage_error(&line, "--resume goes on with a run and --force replaces it: give one");
    mg_status status = name_folder(run, &asked, error);
    if (status != MG_OK) return status;
    if (from->resume) return resume_settings(run, from, argc, argv, error);
    if (!asked.data.path) mg_usage_error(&line, "--data FILE is missing: a text, a CSV or a grammar to train on");
    status = refuse_overwriting(run, error);
    if (status == MG_OK && strcmp(asked.init_from, "scratch") != 0)
        status = weights_settings(run, from, argc, argv, error);
    mg_run_options_resolve(&run->options);
    return status;
}

static void say_what(const mg_run *run) {
    const mg_train_options *o = mg_trainer_options(run->trainer);
    char mask[128];
    mg_mask_words(&o->model, mask, sizeof mask);
    fprintf(stderr, "%s: %td tokens, vocabulary %d; model: %td parameters, mask %s; seed %" PRIu64 ", %s, %s\n",
            run->corpus->name, run->corpus->n, o->model.vocab_size,
            mg_params_count(mg_gpt_params(mg_trainer_model(run->trainer))), mask, o->seed,
            mg_count(mg_threads(), "thread").text, mg_blas_name());
    if (run->corpus->warning[0]) fprintf(stderr, "maskgrad train: %s\n", run->corpus->warning);
}

/* A resumed run's data has its path in run.json, which may be another one from here. */
static mg_status load_data(mg_run *run, const start *from, const mg_data_options *data, mg_error *error) {
    mg_error reason;
    mg_status status = mg_corpus_load(&run->corpus, data, &reason);
    if (status == MG_OK) return MG_OK;
    if (from->resume && access(data->path, F_OK) != 0)
        return mg_error_set(error, status, "%s: give --data FILE, where the data of the run in %s is now",
                            reason.message, run->dir.path);
    *error = reason;
    return status;
}

static mg_status prepare(mg_run *run, start *from, int argc, char **argv, mg_error *error) {
    mg_status status = settings(run, from, argc, argv, error);
    if (status != MG_OK) return status;
    mg_set_threads(run->options.threads);
    mg_data_options data = run->options.data;
    if (from->has_weights) {
        data.tokenizer = from->weights.tokenizer;
        run->options.train.model.vocab_size = mg_gpt_get_config(from->weights.gpt)->vocab_size;
    }
    status = load_data(run, from, &data, error);
    if (status != MG_OK) return status;
    status = mg_trainer_new(&run->trainer, &run->options.train, run->corpus, error);
    if (status != MG_OK) return status;
    if (from->resume) return resume_trainer(run, from, error);
    if (from->has_weights) status = mg_trainer_take_weights(run->trainer, &from->weights, error);
    if (status == MG_OK) status = make_room(run, error);
    run->starts_from_file = from->has_weights;
    return status;
}

int mg_train_command(int argc, char **argv) {
    mg_error error = {MG_OK, ""};
    mg_run run = {.dir = {.lock = -1}, .saved_step = -1};
    start from = {0};
    bool interrupted = false;
    mg_status status = prepare(&run, &from, argc, argv, &error);
    if (from.has_weights) mg_checkpoint_free(&from.weights);
    if (status == MG_OK) {
        say_what(&run);
        status = mg_run_train(&run, &interrupted, &error);
        if (status != MG_OK && run.saved_step >= 0)
            fprintf(stderr, "maskgrad train: the checkpoint of step %" PRId64 " is kept in %s\n", run.saved_step,
                    run.dir.checkpoint);
    }
    if (status == MG_OK && !interrupted) status = mg_run_finish(&run, &interrupted, &error);
    if (status == MG_OK && interrupted)
        fprintf(stderr, "maskgrad train: stopped at step %" PRId64 ", saved in %s; --resume --out-dir %s goes on\n",
                mg_trainer_steps_done(run.trainer), run.dir.checkpoint, run.dir.path);
    mg_run_free(&run);
    mg_run_json_free(from.stored);
    return status == MG_OK && interrupted ? 130 : mg_command_end(&line, status, &error);
}
