#include "options.h"
#include "data_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Defaults ---- */

mg_run_options mg_run_defaults(void) {
    return (mg_run_options){
        .data = {.validation = 0.1, .grammar_size = 1000000},
        .train = mg_train_defaults(),
        .eval_iters = 50,
        .eval_interval = 250,
        .log_interval = 10,
        .init_from = "scratch",
    };
}

void mg_run_options_resolve(mg_run_options *options) {
    mg_train_options_resolve(&options->train);
    options->data.seed = options->train.seed;
    if (options->save_interval == 0) options->save_interval = options->eval_interval;
}

static mg_status parse_tokens(const char *text, void *tokens, mg_error *error) {
    static const char *const kinds[] = {"char", "word", "gpt2"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *(const char **)tokens = kinds[i];
            return MG_OK;
        }
    return mg_error_set(error, MG_ERR_INPUT, "--tokens is char, word or gpt2, not '%s'", text);
}

static void format_text(const void *value, char *text, size_t size) {
    const char *content = *(const char *const *)value;
    snprintf(text, size, "%s", content ? content : "");
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static mg_status parse_delimiter(const char *text, void *value, mg_error *error) {
    bool is_tab = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0, one = text[0] > ' ' && !text[1];
    char found = is_tab || strcmp(text, "\t") == 0 ? '\t' : text[0];
    if (found != '\t' && (!one || (unsigned char)found >= 0x7F || strchr("\"'", found) || is_letter(found)))
        return mg_error_set(error, MG_ERR_INPUT,
                            "--delimiter is one punctuation mark such as ; or the word tab, not '%s'", text);
    *(char *)value = found;
    return MG_OK;
}

static void format_delimiter(const void *value, char *text, size_t size) {
    char delimiter = *(const char *)value;
    const char one[] = {delimiter, '\0'};
    snprintf(text, size, "%s", delimiter == '\t' ? "tab" : one);
}

/* One folder's name, so that the folder is runs/NAME. */
static mg_status parse_name(const char *text, void *name, mg_error *error) {
    if (!text[0] || strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--name is the name of one folder in runs/, without '/', not '%s'; --out-dir takes a path",
                            text);
    *(const char **)name = text;
    return MG_OK;
}

static const char *const alarm_words[] = {[MG_ALARM_SAY] = "say", [MG_ALARM_STOP] = "stop", [MG_ALARM_OFF] = "off"};

static mg_status parse_on_alarm(const char *text, void *value, mg_error *error) {
    for (int i = MG_ALARM_SAY; i <= MG_ALARM_OFF; i++)
        if (strcmp(text, alarm_words[i]) == 0) {
            *(mg_on_alarm *)value = (mg_on_alarm)i;
            return MG_OK;
        }
    return mg_error_set(error, MG_ERR_INPUT, "--on-alarm is say, stop or off, not '%s'", text);
}

static void format_on_alarm(const void *value, char *text, size_t size) {
    snprintf(text, size, "%s", alarm_words[*(const mg_on_alarm *)value]);
}

static mg_status parse_resume(const char *text, void *init_from, mg_error *error) {
    (void)text;
    (void)error;
    *(const char **)init_from = "resume";
    return MG_OK;
}

/* ---- The tables ---- */

#define ROWS_OF mg_run_options
#include "setting_rows.h"

/* A setting is a row, whatever a formatter would make of it. */
/* clang-format off */
const mg_setting mg_data_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Data:"},
    {.name = "data", .also = "dataset f file", FREE, LIST(data.path, "FILE"),
     .help = "A text, a CSV, or a grammar (a CSV with the header state,word,next,weight); a folder: all its files; -: "
             "standard input. Give it again for more files"},
    {.name = "tokens", FIXED, CUSTOM(data.tokens, parse_tokens, format_text, "KIND"),
     .help = "Kind of token: char, word or gpt2 [char; for a grammar, its words]"},
    {.name = "column", FIXED, TEXT(data.column, "NAME"), .help = "Column of a CSV to read; each row is a document"},
    {.name = "delimiter", FIXED, CUSTOM(data.delimiter, parse_delimiter, format_delimiter, "CHAR"), .added = true,
     .help = "What separates the fields of a CSV: a character, or tab [found: comma, semicolon, tab or |]"},
    {.name = "encoding", FREE, TEXT(data.encoding, "NAME"), .added = true,
     .help = "Encoding of the data, as iconv names it: UTF-16, WINDOWS-1252 … [UTF-8]"},
    {.name = "special", FIXED, ON(data.special), .added = true,
     .help = "Read <|endoftext|> in the data as one token, which ends a document; it ends the rows of a CSV, too"},
    {.name = "merges", FREE, TEXT(data.merges, "FILE"), .help = "GPT-2's merges.txt, needed by --tokens gpt2"},
    {.name = "validation", FIXED, REAL(data.validation, 0, 1), .open = MG_SETTING_OPEN_MAX,
     .help = "Fraction of the tokens, from the end, kept for validation (0: validate on the training tokens)"},
    {.name = "grammar-size", FIXED, LONG_COUNT(data.grammar_size, 100, 1000000000),
     .help = "Words to draw from a grammar"},
    {0},
};

const mg_setting mg_measuring_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Measuring:"},
    {.name = "eval-interval", FREE, LONG_COUNT(eval_interval, 1, 1000000000), .help = "Steps between evaluations"},
    {.name = "eval-iters", FREE, COUNT(eval_iters, 1, 1000000), .help = "Batches per evaluation"},
    {0},
};

const mg_setting mg_keeping_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Printing and saving:"},
    {.name = "on-alarm", FREE, CUSTOM(on_alarm, parse_on_alarm, format_on_alarm, "WHAT"),
     .help = "What to do when the model reads its labels: say (warn and continue), stop, or off (do not check)"},
    {.name = "log-attention", ON(log_attention),
     .help = "At each evaluation, log each layer's mean attention entropy and share of saturated rows (attention.csv)"},
    {.name = "log-interval", FREE, LONG_COUNT(log_interval, 1, 1000000000), .help = "Steps between printed lines"},
    {.name = "save-interval", FREE, LONG_COUNT(save_interval, 1, 1000000000),
     .help = "Steps between checkpoints [--eval-interval]"},
    {.name = "sample-interval", FREE, LONG_COUNT(sample_interval, 0, 1000000000), .added = true,
     .help = "Steps between samples of what the model writes, printed and kept in samples.txt (0: only at the end)"},
    {0},
};

const mg_setting mg_machine_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Machine:"},
    {.name = "threads", .also = "t", FREE, COUNT(threads, 0, 256),
     .help = "Threads (0: one per processor); results do not depend on it"},
    {0},
};

const mg_setting mg_folder_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Run folder and start:"},
    {.name = "config", TEXT(config, "FILE"), .once = true,
     .help = "Take flags from a file, one per line, with # comments; or all settings of a run: its folder or its run.json. "
             "The command line wins"},
    {.name = "out-dir", .also = "o out", TEXT(out_dir, "DIR"), .help = "Run folder [runs/NAME]"},
    {.name = "name", FREE, CUSTOM(name, parse_name, format_text, "NAME"), .help = "Name of the run [made from the data and the mask]"},
    {.name = "init-from", TEXT(init_from, "WHAT"),
     .help = "scratch: random weights; resume: continue the run in --out-dir; or a checkpoint to take the weights from"},
    {.name = "resume", CUSTOM(init_from, parse_resume, format_text, NULL), .help = "Continue the run in --out-dir; same as --init-from resume"},
    {.name = "auto-resume", ON(auto_resume),
     .help = "Begin the run, or continue it if it is in the folder already; a finished run stays as it is"},
    {.name = "force", ON(force), .help = "Replace a run that is already in the folder"},
    {0},
};
/* clang-format on */

const mg_settings mg_run_settings[] = {
    {mg_data_settings, 0},
    MG_SETTINGS_OF_TRAIN(mg_model_settings),
    MG_SETTINGS_OF_TRAIN(mg_lesson_settings),
    MG_SETTINGS_OF_TRAIN(mg_training_settings),
    {mg_measuring_settings, 0},
    {mg_keeping_settings, 0},
    {mg_machine_settings, 0},
    {mg_folder_settings, 0},
    {NULL, 0},
};

void mg_run_default_dir(const mg_run_options *options, char *path, size_t size) {
    if (options->name) {
        snprintf(path, size, "runs/%s", options->name);
        return;
    }
    char base[256];
    size_t first = strcspn(options->data.path, "\n");
    mg_data_name(options->data.path, base, sizeof base);
    bool several = options->data.path[first] != '\0';
    char *dot = strrchr(base, '.');
    if (dot && dot > base && !several) *dot = '\0';
    for (char *c = base; *c && several; c++)
        if (*c == ' ') *c = '-';
    char mask[128];
    mg_mask_words(&options->train.model, mask, sizeof mask);
    char *to = mask; /* "none, leak 0.1:2" becomes "none-leak-0.1-2" */
    for (const char *from = mask; *from; from++)
        if (*from != ',') *to++ = *from == ' ' || *from == ':' ? '-' : *from;
    *to = '\0';
    snprintf(path, size, "runs/%s-%s", base, mask);
}
