#include "plan.h"
#include "hash.h"
#include "run_dir.h"
#include "run_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_NAME = 200, NAME_ROOM = 8192 }; /* bytes; folders take 255, and files beside them need a suffix */

/* ---- Names ---- */

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("._+-:", c));
}

/* The text as it was typed, in which other bytes become %XX: different texts stay different. */
static size_t append(char *name, size_t at, const char *text) {
    for (; *text && at + 4 < NAME_ROOM; text++)
        if (is_plain(*text))
            name[at++] = *text;
        else
            at += (size_t)snprintf(name + at, 4, "%%%02X", (unsigned char)*text);
    name[at] = '\0';
    return at;
}

/* "mask=none,lr=3e-3,seed=1". What is too long ends in a hash of all of it. */
static char *name_of(const mg_sweep_plan *plan, int run) {
    char name[NAME_ROOM] = "";
    mg_sweep_choice choices[MG_SWEEP_MAX_SETTINGS];
    int n = mg_sweep_grid_choose(plan->grid, run, choices);
    size_t at = 0;
    uint64_t hash = MG_FNV_START;
    for (int i = 0; i < n; i++) {
        const char *label = choices[i].setting->name, *text = choices[i].text;
        hash = mg_fnv1a(mg_fnv1a(hash, label, strlen(label) + 1), text, strlen(text) + 1);
        if (at > 0 && at + 1 < NAME_ROOM) name[at++] = ',';
        at = append(name, at, label);
        if (at + 1 < NAME_ROOM) name[at++] = '=';
        at = append(name, at, text);
    }
    if (n == 0) at = append(name, 0, "run");
    if (at > LONGEST_NAME)
        at = LONGEST_NAME + (size_t)snprintf(name + LONGEST_NAME, NAME_ROOM - LONGEST_NAME, "~%016" PRIx64, hash);
    return (char *)mg_sweep_grid_keep(plan->grid, name, at);
}

/* ---- Settings ---- */

mg_run_options mg_sweep_options(const mg_sweep_plan *plan, int run) {
    mg_run_options options = plan->base;
    mg_sweep_choice choices[MG_SWEEP_MAX_SETTINGS];
    int n = mg_sweep_grid_choose(plan->grid, run, choices);
    for (int i = 0; i < n; i++) {
        mg_error error;
        MG_CHECK(mg_sweep_choice_apply(&choices[i], &options, &error) == MG_OK, "a value that was legal is not: %s",
                 error.message);
    }
    mg_run_options_resolve(&options);
    return options;
}

typedef struct fingerprint {
    uint64_t hash;
    int run;
} fingerprint;

static uint64_t hash_of(const mg_run_options *options) {
    uint64_t hash = MG_FNV_START;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        char text[MG_SETTING_ROOM];
        mg_setting_format(s, (const char *)options + at.base, text, sizeof text);
        hash = mg_fnv1a(hash, text, strlen(text) + 1);
    }
    return mg_fnv1a(hash, options->init_from, strlen(options->init_from)); /* defines a run, though no file holds it */
}

static int by_hash(const void *a, const void *b) {
    const fingerprint *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->run - y->run;
}

static mg_status refuse_twins(const mg_sweep_plan *plan, mg_error *error) {
    fingerprint *all = mg_alloc((size_t)plan->n, sizeof *all, "a sweep", error);
    if (!all) return MG_ERR_MEMORY;
    for (int i = 0; i < plan->n; i++) {
        mg_run_options options = mg_sweep_options(plan, i);
        all[i] = (fingerprint){hash_of(&options), i};
    }
    qsort(all, (size_t)plan->n, sizeof *all, by_hash);
    mg_status status = MG_OK;
    for (int i = 1; i < plan->n && status == MG_OK; i++)
        if (all[i].hash == all[i - 1].hash)
            status = mg_error_set(error, MG_ERR_INPUT, "%s and %s are the same run: give each once",
                                  plan->name[all[i - 1].run], plan->name[all[i].run]);
    mg_free(all);
    return status;
}

mg_status mg_sweep_plan_make(mg_sweep_plan *plan, mg_error *error) {
    mg_status status = mg_sweep_grid_count(plan->grid, &plan->n, error);
    if (status != MG_OK) return status;
    plan->name = mg_alloc((size_t)plan->n, sizeof *plan->name, "a sweep", error);
    if (!plan->name) return MG_ERR_MEMORY;
    for (int i = 0; i < plan->n; i++) plan->name[i] = name_of(plan, i);
    return refuse_twins(plan, error);
}

void mg_sweep_plan_free(mg_sweep_plan *plan) {
    mg_free(plan->name);
    plan->name = NULL;
}

/* ---- Paths and commands ---- */

#define OUTPUT "/output"

static char *join(const char *a, const char *b, const char *c, const char *d) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
    char *text = mg_alloc(size, 1, "a path", NULL);
    if (!text) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory for a path");
    snprintf(text, size, "%s%s%s%s", a, b, c, d);
    return text;
}

mg_status mg_sweep_make_folders(const mg_sweep_plan *plan, mg_error *error) {
    char *path = join(plan->out_dir, OUTPUT, "", "");
    mg_status status = mg_make_folders(path, NULL, error);
    mg_free(path);
    return status;
}

char *mg_sweep_folder(const mg_sweep_plan *plan, int run) {
    return join(plan->out_dir, "/", plan->name[run], "");
}

char *mg_sweep_output(const mg_sweep_plan *plan, int run, const char *suffix) {
    return join(plan->out_dir, OUTPUT "/", plan->name[run], suffix);
}

static char *word(const mg_sweep_plan *plan, const char *a, const char *b, const char *c) {
    char *text = join(a, b, c, "");
    char *kept = (char *)mg_sweep_grid_keep(plan->grid, text, strlen(text));
    mg_free(text);
    return kept;
}

char **mg_sweep_words(const mg_sweep_plan *plan, int run, int threads) {
    mg_sweep_choice choices[MG_SWEEP_MAX_SETTINGS];
    int n_choices = mg_sweep_grid_choose(plan->grid, run, choices), n = 0;
    char *folder = mg_sweep_folder(plan, run), number[32];
    char **words = mg_arena_alloc(plan->grid->arena, (size_t)(plan->n_words + n_choices) + 8, sizeof *words,
                                  "a command");
    words[n++] = (char *)plan->program;
    words[n++] = "train";
    for (int i = 0; i < plan->n_words; i++) words[n++] = plan->words[i];
    for (int i = 0; i < n_choices; i++) {
        const mg_setting *setting = choices[i].setting;
        if (!mg_setting_is_switch(setting))
            words[n++] = word(plan, "--", setting->name, word(plan, "=", choices[i].text, ""));
        else if (mg_sweep_switch_is_on(choices[i].text))
            words[n++] = word(plan, "--", setting->name, "");
    }
    snprintf(number, sizeof number, "%d", threads);
    if (threads > 0) words[n++] = word(plan, "--threads=", number, "");
    words[n++] = word(plan, "--out-dir=", folder, "");
    words[n++] = "--auto-resume";
    words[n] = NULL;
    mg_free(folder);
    return words;
}

void mg_sweep_print_word(FILE *out, const char *text) {
    bool plain = *text != '\0';
    for (const char *c = text; *c; c++) plain = plain && (is_plain(*c) || strchr("/=,@%", *c));
    if (plain) {
        fputs(text, out);
        return;
    }
    putc('\'', out);
    for (; *text; text++) fprintf(out, *text == '\'' ? "'\\''" : "%c", *text);
    putc('\'', out);
}

void mg_sweep_print_command(FILE *out, char *const *words) {
    for (int i = 0; words[i]; i++) {
        if (i > 0) putc(' ', out);
        mg_sweep_print_word(out, words[i]);
    }
    putc('\n', out);
}

/* ---- What is there ---- */

/* A run that starts from a file has the file's sizes: train compares them. */
static mg_status check_settings(const mg_run_dir *dir, const mg_run_options *planned, mg_error *error) {
    mg_run_json *json;
    mg_run_options stored;
    mg_status status = mg_run_json_read(&json, dir->run_json, &stored, error);
    if (status != MG_OK) return status;
    const mg_setting *differs = strcmp(planned->init_from, "scratch") == 0
                                    ? mg_settings_conflict(mg_run_settings, &stored, planned)
                                    : NULL;
    if (differs)
        status = mg_error_set(
            error, MG_ERR_INPUT,
            "%s holds a run with another --%s than this sweep would give it: choose another --out-dir", dir->path,
            differs->name);
    mg_run_json_free(json);
    return status;
}

mg_status mg_sweep_look(const mg_sweep_plan *plan, int run, mg_sweep_state *state, int64_t *steps, mg_error *error) {
    char *folder = mg_sweep_folder(plan, run), *failed = mg_sweep_output(plan, run, MG_SWEEP_FAILURE);
    mg_run_options options = mg_sweep_options(plan, run);
    mg_run_dir dir;
    mg_run_log_row last;
    *state = MG_SWEEP_NEW;
    *steps = 0;
    mg_status status = mg_run_dir_name(&dir, folder, error);
    if (status == MG_OK && mg_run_dir_holds_run(&dir) && access(dir.run_json, F_OK) == 0) {
        status = check_settings(&dir, &options, error);
        *state = MG_SWEEP_BEGUN;
        if (mg_run_log_last(dir.log, &last)) *steps = mg_run_log_steps_done(&last);
        if (mg_run_dir_is_finished(&dir, options.train.max_iters)) *state = MG_SWEEP_FINISHED;
    }
    if (*state != MG_SWEEP_FINISHED && access(failed, F_OK) == 0) *state = MG_SWEEP_FAILED_BEFORE;
    mg_run_dir_close(&dir);
    mg_free(folder);
    mg_free(failed);
    return status;
}

void mg_sweep_reason(const mg_sweep_plan *plan, int run, char *text, size_t size) {
    char *path = mg_sweep_output(plan, run, MG_SWEEP_FAILURE);
    FILE *file = fopen(path, "rb");
    static const char said_by[] = "maskgrad train: ";
    char line[1024];
    snprintf(text, size, "its output is gone");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        bool is_advice = strncmp(line, "Try `", strlen("Try `")) == 0;
        size_t who = strncmp(line, said_by, strlen(said_by)) == 0 ? strlen(said_by) : 0;
        if (line[0] && !is_advice) snprintf(text, size, "%s", line + who);
    }
    if (file) fclose(file);
    mg_free(path);
}
