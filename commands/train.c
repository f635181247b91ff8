/* The command `train`: what is asked, the folder, the data, and where the run starts from. */
#include "arithmetic.h"
#include "commands.h"
#include "config_file.h"
#include "data_files.h"
#include "file_limits.h"
#include "flags.h"
#include "gemm.h"
#include "hash.h"
#include "heap.h"
#include "interrupt.h"
#include "launch.h"
#include "printable.h"
#include "progress.h"
#include "read_text.h"
#include "run.h"
#include "say.h"
#include "threads.h"
#include "train_output.h"
#include "utf8.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const mg_command_line line = {
    .name = "train",
    .stray = "data is given as --data FILE",
    .doc =
        "Train a GPT on a text, a CSV or a grammar, and keep the run in a folder.\v"
        "Ctrl-C finishes the step and saves (status 130), and so does the end of a pipe, as in train | head; --resume "
        "continues the run, bit for bit, with its settings.\n\n"
        "  maskgrad train --data datasets/data/frases.csv\n"
        "  maskgrad train --data datasets/data/frases.csv --mask none",
};

/* What the command needs besides the run itself. */
typedef struct start {
    bool resume;
    bool finished;         /* --auto-resume: there is nothing to do */
    mg_run_json *stored;   /* the resumed run's settings */
    mg_checkpoint weights; /* of the resumed run, or of --init-from FILE */
    bool has_weights;
    mg_run_json *repeated; /* the run whose settings --config takes; NULL: none */
    char *config;          /* the text of a file of flags, to which the settings point */
} start;

static void flag_tables(mg_flag_table *tables, mg_run_options *options) {
    tables[0] = (mg_flag_table){NULL, NULL};
    mg_flag_tables_add(tables, mg_run_settings, options);
}

/* Apply the given flags to options other than the defaults. */
static void apply(const mg_given *given, mg_run_options *options) {
    mg_flag_table tables[MG_MAX_FLAG_TABLES];
    flag_tables(tables, options);
    mg_given_apply(given, tables);
}

/* ---- --config ---- */

/* All settings of another run, but neither its folder nor its name. */
static mg_status repeat_run(mg_run *run, start *from, const char *path, mg_error *error) {
    if (strcmp(run->options.init_from, "scratch") != 0 || run->options.auto_resume)
        mg_usage_error(&line,
                       "--config %s takes the settings of a run, and --resume and --init-from have their own: give "
                       "one",
                       path);
    mg_run_options now = run->options;
    mg_status status = mg_run_json_read(&from->repeated, path, &run->options, error);
    if (status != MG_OK) return status;
    run->options.config = now.config;
    run->options.out_dir = now.out_dir;
    run->options.force = now.force;
    run->options.name = NULL;
    run->options.init_from = "scratch";
    return MG_OK;
}

/* What the file says comes before what the command line says. */
static mg_status take_config(mg_run *run, start *from, mg_given *given, mg_error *error) {
    char path[4096];
    struct stat about;
    size_t length;
    const char *asked = run->options.config;
    if (!asked) return MG_OK;
    bool is_folder = stat(asked, &about) == 0 && S_ISDIR(about.st_mode);
    snprintf(path, sizeof path, "%s%s", asked, is_folder ? "/run.json" : "");
    mg_status status = is_folder ? mg_check_run_folder(asked, error) : MG_OK;
    if (status == MG_OK) status = mg_read_text(path, MG_MOST_CONFIG, &from->config, &length, error);
    if (status != MG_OK) return status;
    mg_given in_file = {0};
    if (from->config[strspn(from->config, " \t\r\n")] == '{') {
        status = repeat_run(run, from, path, error);
        if (status == MG_OK) apply(given, &run->options);
        return status;
    }
    mg_flag_table tables[MG_MAX_FLAG_TABLES];
    mg_run_options options = mg_run_defaults();
    flag_tables(tables, &options);
    mg_config_read(&line, path, from->config, tables, &in_file);
    if (options.config) mg_usage_error(&line, "%s: a file of flags cannot name another one", path);
    mg_given_add_before(given, &in_file);
    apply(given, &options);
    run->options = options;
    return MG_OK;
}

/* Repeated with other data, a run is another run. */
static void say_other_data(const mg_run *run, const start *from) {
    if (from->repeated && mg_run_json_data_hash(from->repeated) != run->corpus->hash)
        mg_say("train", "the data is not that of the run in %s: its content has changed, or how it is read",
               mg_shown(run->options.config).text);
}

static mg_status name_folder(mg_run *run, const mg_run_options *asked, mg_error *error) {
    char path[4096];
    if (!asked->out_dir && !asked->name && !asked->data.path)
        mg_usage_error(&line, "%s",
                       strcmp(asked->init_from, "resume") == 0
                           ? "--resume needs --out-dir or --name, the run to continue"
                           : "--data FILE is missing: a text, a CSV or a grammar to train on");
    mg_refuse_empty(&line, "out-dir", "folder", asked->out_dir);
    if (asked->out_dir)
        snprintf(path, sizeof path, "%s", asked->out_dir);
    else
        mg_run_default_dir(asked, path, sizeof path);
    return mg_run_dir_name(&run->dir, path, error);
}

/* ---- Several ranks ---- */

/* Only rank 0 writes and prints. */
static bool leads(const mg_run *run) {
    return !run->ranks || run->ranks->rank == 0;
}

/* What a rank above 0 prints until it trains, rank 0 prints, too. Returns the descriptor of the error output. */
static int mute(void) {
    int held = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
    return held;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return mg_fnv1a(hash, text, strlen(text) + 1);
}

static uint64_t hash_settings(const mg_run_options *options) {
    uint64_t hash = hash_text(hash_text(MG_FNV_START, MG_ARITHMETIC), mg_blas_name());
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        char text[MG_SETTING_ROOM];
        mg_setting_format(s, (const char *)options + at.base, text, sizeof text);
        hash = hash_text(hash, text);
    }
    return hash;
}

static mg_status check_ranks(mg_run *run, mg_error *error) {
    const mg_run_options *o = &run->options;
    if (!mg_ranks_are_many(run->ranks)) return MG_OK;
    if (mg_data_is_stream(o->data.path))
        return mg_error_set(error, MG_ERR_INPUT,
                            "--data %s: only one of %d ranks has the standard input: give a file that all can read",
                            o->data.path, run->ranks->count);
    mg_status status = mg_ranks_check(run->ranks, o->train.grad_accum, error);
    if (status != MG_OK) return status;
    return mg_ranks_same(run->ranks, hash_settings(o), "settings or another BLAS kernel", error);
}

/* Ranks on one machine share its processors, unless --threads says otherwise. */
static void set_threads(const mg_run *run) {
    mg_set_threads(run->options.threads);
    int share = mg_threads() / mg_launch_neighbors(run->ranks);
    if (run->options.threads == 0 && mg_launch_neighbors(run->ranks) > 1) mg_set_threads(share > 0 ? share : 1);
}

/* ---- Resuming ---- */

/* A setting's flag as it was given: two set the lookahead. */
static const mg_setting *as_given(const mg_given *given, const mg_setting *setting) {
    for (const mg_settings *table = mg_run_settings; table->rows; table++)
        for (const mg_setting *row = table->rows; !mg_setting_is_end(row); row++) {
            if (row != setting) continue;
            const mg_setting *found = mg_given_find(given, table->rows, setting);
            return found ? found : setting;
        }
    return setting;
}

static mg_status check_resumed(const mg_run_options *stored, const mg_run_options *now, const mg_run_dir *dir,
                               const mg_given *given, mg_error *error) {
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        const char *before = (const char *)stored + at.base, *after = (const char *)now + at.base;
        if (s->role != MG_ROLE_FIXED || mg_setting_equal(s, before, after)) continue;
        const mg_setting *flag = as_given(given, s);
        char was[MG_SETTING_ROOM], is[MG_SETTING_ROOM];
        mg_setting_format(flag, before, was, sizeof was);
        mg_setting_format(flag, after, is, sizeof is);
        return mg_error_set(error, MG_ERR_INPUT,
                            "--%s is '%.200s', but the run in %s was started with '%.200s'; a resumed run cannot "
                            "change it",
                            flag->name, is, dir->path, was);
    }
    return MG_OK;
}

/* The stored settings, with what the command line says on top of them. */
static mg_status resume_settings(mg_run *run, start *from, const mg_given *given, mg_error *error) {
    if (access(run->dir.run_json, F_OK) != 0)
        return mg_error_set(error, MG_ERR_INPUT, "there is no run to resume in %s: it has no run.json", run->dir.path);
    mg_run_options stored;
    mg_status status = leads(run) ? mg_run_dir_lock(&run->dir, error) : MG_OK;
    if (status == MG_OK) status = mg_run_dir_check_files(&run->dir, error);
    if (status == MG_OK) status = mg_run_json_read(&from->stored, run->dir.run_json, &stored, error);
    if (status != MG_OK) return status;
    if (mg_data_is_stream(stored.data.path) && !mg_given_any(given, "data"))
        return mg_error_set(error, MG_ERR_INPUT,
                            "the data of the run in %s came from standard input: give --data FILE, or --data - and the "
                            "same data again",
                            run->dir.path);
    run->before = from->stored;
    run->options = stored;
    apply(given, &run->options);
    mg_run_options_resolve(&run->options);
    status = check_resumed(&stored, &run->options, &run->dir, given, error);
    if (status != MG_OK || access(run->dir.checkpoint, F_OK) != 0) return status;
    from->finished = run->options.auto_resume && mg_run_dir_is_finished(&run->dir, run->options.train.max_iters);
    if (from->finished) return MG_OK;
    status = mg_checkpoint_load(&from->weights, run->dir.checkpoint, true, error);
    from->has_weights = status == MG_OK;
    return status;
}

static mg_status resume_trainer(mg_run *run, const start *from, mg_error *error) {
    uint64_t hash = mg_run_json_data_hash(from->stored);
    if (run->corpus->hash != hash)
        return mg_error_set(error, MG_ERR_INPUT,
                            "the data %s is not what the run in %s was started with: its content, or tokens, column "
                            "or validation in run.json, has changed (hash %016" PRIx64 ", and was %016" PRIx64 ")",
                            run->options.data.path, run->dir.path, run->corpus->hash, hash);
    char machine[512];
    if (mg_run_json_other_machine(from->stored, machine, sizeof machine))
        mg_say("train",
               "warning: this machine's results differ in their last bits from those where the run "
               "began: %s",
               machine);
    if (!from->has_weights) {
        mg_say("train", "no checkpoint was saved in %s yet: the run begins at step 0", mg_shown(run->dir.path).text);
        return MG_OK;
    }
    mg_status status = mg_trainer_restore(run->trainer, &from->weights, error);
    if (status != MG_OK) return status;
    run->saved_step = mg_trainer_steps_done(run->trainer);
    if (run->saved_step > run->options.train.max_iters)
        return mg_error_set(error, MG_ERR_INPUT, "--max-iters %" PRId64 ": the run in %s has done %s already",
                            run->options.train.max_iters, run->dir.path, mg_count(run->saved_step, "step").text);
    mg_say("train", "continuing at step %" PRId64 " of %" PRId64, run->saved_step, run->options.train.max_iters);
    return MG_OK;
}

/* ---- Beginning ---- */

static mg_status refuse_overwriting(const mg_run *run, mg_error *error) {
    const mg_run_dir *dir = &run->dir;
    if (run->options.force) return MG_OK;
    if (mg_run_dir_holds_run(dir) && !mg_run_dir_was_just_begun(dir))
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s already holds a run: --resume continues it, --force replaces it, and --out-dir "
                            "chooses another folder",
                            dir->path);
    const char *foreign = mg_run_dir_foreign_file(dir);
    if (!foreign) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT,
                        "%s exists, and there is no run.json of maskgrad beside it: --force replaces it, and --out-dir "
                        "chooses another folder",
                        foreign);
}

/* Once all else is in order: nothing is made or removed for a run that cannot begin. */
static mg_status make_room(mg_run *run, mg_error *error) {
    mg_status status = mg_run_dir_lock(&run->dir, error);
    if (status == MG_OK) status = refuse_overwriting(run, error);
    if (status == MG_OK) status = mg_run_dir_check_files(&run->dir, error);
    if (status == MG_OK) mg_run_dir_clear(&run->dir);
    return status;
}

/* The model of --init-from FILE is the file's; flags may change its mask, not its sizes. */
static mg_status weights_settings(mg_run *run, start *from, const mg_given *given, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(run->options.init_from, path, sizeof path);
    mg_status status = mg_checkpoint_load(&from->weights, path, false, error);
    if (status != MG_OK) return status;
    from->has_weights = true;
    if (!from->weights.tokenizer)
        return mg_error_set(error, MG_ERR_INPUT, "%s has no tokenizer: it cannot read a text", path);
    mg_run_options stored = mg_run_defaults();
    stored.train.model = *mg_gpt_get_config(from->weights.gpt);
    run->options = stored;
    apply(given, &run->options);
    const mg_gpt_config *file = &stored.train.model, *asked = &run->options.train.model;
    char places[64] = " --no-positions";
    if (!file->no_positions) snprintf(places, sizeof places, " --block-size %d", file->block_size);
    if (file->n_layer != asked->n_layer || file->n_head != asked->n_head || file->n_embd != asked->n_embd ||
        file->no_output_projection != asked->no_output_projection || file->no_positions != asked->no_positions ||
        (!file->no_positions && file->block_size != asked->block_size))
        return mg_error_set(error, MG_ERR_INPUT,
                            "the model in %s has --n-layer %d --n-head %d --n-embd %d%s%s; a run that starts from it "
                            "cannot change these",
                            path, file->n_layer, file->n_head, file->n_embd, places,
                            file->no_output_projection ? " --no-output-projection" : "");
    return MG_OK;
}

/* Before anything is made: run.json is UTF-8, and holds all settings. */
static mg_status check_texts(const mg_run_options *options, mg_error *error) {
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        char text[MG_SETTING_ROOM];
        mg_setting_format(s, (const char *)options + at.base, text, sizeof text);
        if (mg_utf8_check(text, strlen(text), NULL) != MG_OK)
            return mg_error_set(
                error, MG_ERR_INPUT,
                "--%s is '%s', which is not UTF-8 and cannot be written to run.json: rename or link the file", s->name,
                text);
    }
    return MG_OK;
}

static mg_status settings(mg_run *run, start *from, const mg_given *given, mg_error *error) {
    mg_run_options asked = run->options;
    from->resume = strcmp(asked.init_from, "resume") == 0;
    if ((from->resume || asked.auto_resume) && asked.force)
        mg_usage_error(&line, "%s continues a run and --force replaces it: give one",
                       from->resume ? "--resume" : "--auto-resume");
    if (asked.out_dir) mg_warn_idle(&line, given, "name", "it names a folder in runs/, and --out-dir names another");
    mg_status status = check_texts(&asked, error);
    if (status == MG_OK) status = name_folder(run, &asked, error);
    if (status != MG_OK) return status;
    if (asked.auto_resume && mg_run_dir_holds_run(&run->dir) && !mg_run_dir_was_just_begun(&run->dir))
        from->resume = true;
    if (from->resume) return resume_settings(run, from, given, error);
    if (!asked.data.path) mg_usage_error(&line, "--data FILE is missing: a text, a CSV or a grammar to train on");
    status = refuse_overwriting(run, error);
    bool from_file = strcmp(asked.init_from, "scratch") != 0;
    if (status == MG_OK && from_file) {
        mg_warn_idle(&line, given, "init-std attn-init-std", "the initial weights are those of --init-from");
        status = weights_settings(run, from, given, error);
    }
    mg_run_options_resolve(&run->options);
    return status;
}

/* A resumed run's data has its path in run.json, which may be another one from here. */
static mg_status load_data(mg_run *run, const start *from, const mg_data_options *data, mg_error *error) {
    mg_error reason;
    mg_status status = mg_corpus_load(&run->corpus, data, &reason);
    if (status == MG_OK) return MG_OK;
    if (from->resume && status == MG_ERR_IO)
        return mg_error_set(error, status, "%s: give --data FILE, where the data of the run in %s is now",
                            reason.message, run->dir.path);
    *error = reason;
    return status;
}

static mg_status read_data(mg_run *run, const start *from, mg_error *error) {
    set_threads(run);
    mg_data_options data = run->options.data;
    if (from->has_weights) {
        data.tokenizer = from->weights.tokenizer;
        run->options.train.model.vocab_size = mg_gpt_get_config(from->weights.gpt)->vocab_size;
    }
    return load_data(run, from, &data, error);
}

static mg_status make_trainer(mg_run *run, start *from, mg_error *error) {
    say_other_data(run, from);
    mg_status status = mg_trainer_new(&run->trainer, &run->options.train, run->corpus, error);
    if (status == MG_OK) status = mg_trainer_set_ranks(run->trainer, run->ranks, error);
    if (status != MG_OK) return status;
    if (from->resume) return resume_trainer(run, from, error);
    run->starts_from_file = from->has_weights;
    return from->has_weights ? mg_trainer_take_weights(run->trainer, &from->weights, error) : MG_OK;
}

/* All ranks do the same, and agree on it before rank 0 changes anything in the folder. */
static mg_status prepare(mg_run *run, start *from, const mg_given *given, mg_error *error) {
    mg_status status = mg_ranks_agree(run->ranks, settings(run, from, given, error), error);
    if (status == MG_OK && !from->finished) status = check_ranks(run, error);
    if (status != MG_OK || from->finished) return status;
    status = mg_ranks_agree(run->ranks, read_data(run, from, error), error);
    if (status == MG_OK) status = mg_ranks_same(run->ranks, run->corpus->hash, "data", error);
    if (status == MG_OK) status = mg_ranks_agree(run->ranks, make_trainer(run, from, error), error);
    if (status == MG_OK) status = mg_run_check_weights(run, error);
    if (status != MG_OK || from->resume) return status;
    return mg_ranks_agree(run->ranks, leads(run) ? make_room(run, error) : MG_OK, error);
}

/* ---- All of it ---- */

static mg_status train(mg_run *run, bool *stopped, mg_error *error) {
    mg_progress progress = mg_progress_begin(mg_trainer_steps_done(run->trainer), run->options.train.max_iters,
                                             mg_train_tokens_per_step(run));
    run->watch = mg_train_watch(&progress);
    mg_train_announce(run);
    mg_interrupt_watch("finishing the step");
    mg_status status = mg_run_train(run, stopped, error);
    mg_progress_clear(&progress);
    if (status != MG_OK && run->saved_step >= 0)
        mg_say("train", "the checkpoint of step %" PRId64 " is kept in %s", run->saved_step,
               mg_shown(run->dir.checkpoint).text);
    return status;
}

static mg_status finish(mg_run *run, bool *stopped, mg_error *error) {
    mg_run_results results;
    mg_status status = mg_run_finish(run, &results, error);
    *stopped = status == MG_ERR_STOPPED;
    if (status != MG_OK) return *stopped ? MG_OK : status;
    mg_train_summarize(run, &results.evaluation, &results.score);
    mg_evaluation_free(&results.evaluation);
    return MG_OK;
}

/* The part of a rank above 0. It prints only what rank 0 can no longer print. */
static mg_status follow(mg_run *run, int error_output, mg_error *error) {
    dup2(error_output, STDERR_FILENO);
    run->watch = (mg_run_watch){.stop = mg_interrupt_stop()};
    mg_interrupt_watch(NULL);
    return mg_run_follow(run, error);
}

static void say_stopped(const mg_run *run) {
    mg_say("train", "%sstopped at step %" PRId64 ", saved in %s; continue with --resume --out-dir %s",
           mg_interrupt_by_reader() ? "the reader of the output is gone: " : "", mg_trainer_steps_done(run->trainer),
           mg_shown(run->dir.checkpoint).text, mg_shown(run->dir.path).text);
}

static void say_strangers(void) {
    if (mg_launch_strangers() > 1)
        mg_say("train",
               "%d processes were started together, and this maskgrad was built without MPI: each trains by itself "
               "(docs/scale.md)",
               mg_launch_strangers());
}

static mg_status work(mg_run *run, const start *from, int error_output, bool *stopped, mg_error *error) {
    if (from->finished) return MG_OK;
    if (!leads(run)) return follow(run, error_output, error);
    mg_status status = train(run, stopped, error);
    if (status == MG_OK && !*stopped) status = finish(run, stopped, error);
    if (status == MG_OK && *stopped) say_stopped(run);
    return status;
}

/* All ranks end with the exit status of rank 0. If one cannot be reached, MPI ends all when this one exits. */
static int leave(mg_ranks *ranks, int exit_status) {
    if (mg_ranks_are_many(ranks)) {
        if (ranks->broken || mg_ranks_broadcast(ranks, &exit_status, sizeof exit_status, NULL) != MG_OK) return 1;
    }
    mg_launch_leave(ranks);
    return exit_status;
}

static int run_command(int argc, char **argv) {
    mg_error error = {MG_OK, ""};
    mg_run run = {.options = mg_run_defaults(), .dir = {.lock = -1}, .saved_step = -1};
    mg_flag_table tables[MG_MAX_FLAG_TABLES];
    mg_given given;
    mg_status status = mg_launch_join(&run.ranks, &error);
    if (status != MG_OK) return mg_command_end(&line, status, &error);
    int error_output = leads(&run) ? STDERR_FILENO : mute();
    flag_tables(tables, &run.options);
    mg_flags_parse(&line, tables, argc, argv, NULL, &given);

    start from = {0};
    bool stopped = false;
    status = mg_ranks_agree(run.ranks, take_config(&run, &from, &given, &error), &error);
    if (status == MG_OK) status = prepare(&run, &from, &given, &error);
    if (from.finished) mg_say("train", "the run in %s is finished", mg_shown(run.dir.path).text);
    if (status != MG_OK && run.dir.lock >= 0) mg_run_dir_unmake(&run.dir);
    bool held = status != MG_OK && run.options.auto_resume && run.dir.held;
    if (run.dir.held) say_strangers();
    if (from.has_weights) mg_checkpoint_free(&from.weights);
    if (status == MG_OK) status = work(&run, &from, error_output, &stopped, &error);
    mg_ranks *ranks = run.ranks;
    mg_run_free(&run);
    mg_run_json_free(from.stored);
    mg_run_json_free(from.repeated);
    mg_free(from.config);
    bool speaks = !ranks || ranks->rank == (ranks->broken && ranks->missing == 0 ? 1 : 0);
    int exit_status = speaks ? mg_command_end(&line, status, &error) : 1;
    return leave(ranks, held ? 3 : status == MG_OK && stopped ? 130 : exit_status);
}

const mg_command mg_train_command = {"train", N_("Train a model, with the causal mask or without"), run_command};
