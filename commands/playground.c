/* The command `playground`: a page in which the library trains two models, one mask apart. */
#include "atomic_file.h"
#include "commands.h"
#include "corpus.h"
#include "flags.h"
#include "heap.h"
#include "read_text.h"
#include "startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Words of the corpus in the page, which takes 8/3 bytes for each; and the context of its models. */
enum { WORDS = 30000, CONTEXT = 32, MOST_PAGE = 16 << 20, MOST_VOCABULARY = 1 << 16 };

typedef struct playground_options {
    const char *data, *out;
} playground_options;

#define ROWS_OF playground_options
#include "flag_rows.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "out", .also = "o", TEXT(out, "FILE"), .help = "The page to write"},
    {.name = "data", .also = "d", TEXT(data, "FILE"), .help = "A grammar: a CSV file with the header state,word,next,weight"},
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "playground",
    .stray = "data is given as --data FILE",
    .doc = "Write one HTML file in which two models train before your eyes, one mask apart. It needs no network and no "
           "server: open it in a browser."};

/* ---- What the page is about ---- */

static void print_base64(FILE *out, const unsigned char *bytes, size_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16 | (i + 1 < n ? (unsigned)bytes[i + 1] << 8 : 0) |
                         (i + 2 < n ? (unsigned)bytes[i + 2] : 0);
        char text[] = {digit[group >> 18], digit[group >> 12 & 63], digit[group >> 6 & 63], digit[group & 63], '\0'};
        if (i + 2 >= n) text[3] = '=';
        if (i + 1 >= n) text[2] = '=';
        fputs(text, out);
    }
}

/* The vocabulary is in base64, too, each word with a 0 after it: no word can end the page's script. */
static mg_status print_data(FILE *out, const mg_corpus *corpus, mg_error *error) {
    double floor[CONTEXT], standard_error;
    bool is_exact;
    mg_status status = mg_grammar_floor(corpus->grammar, CONTEXT, floor, &standard_error, &is_exact, error);
    if (status) return status;
    int n_words = mg_tokenizer_size(corpus->tokenizer);
    char *words = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&words, &length);
    unsigned char *ids = mg_alloc((size_t)corpus->n, 2, "the page's corpus", error);
    for (int id = 0; text && id < n_words; id++) {
        mg_token token = mg_tokenizer_token(corpus->tokenizer, id);
        fwrite(token.bytes, 1, token.length, text);
        fputc('\0', text);
    }
    for (ptrdiff_t i = 0; ids && i < corpus->n; i++) {
        ids[2 * i] = (unsigned char)corpus->ids[i];
        ids[2 * i + 1] = (unsigned char)(corpus->ids[i] >> 8);
    }
    if (!text || fclose(text) != 0 || !ids) {
        status = mg_error_set(error, MG_ERR_MEMORY, "out of memory for the page's words");
    } else {
        fputs("{\"floor\":[", out);
        for (int t = 0; t < CONTEXT; t++) fprintf(out, "%s%.9g", t ? "," : "", floor[t]);
        fputs("],\"name\":\"", out);
        print_base64(out, (const unsigned char *)corpus->name, strlen(corpus->name));
        fputs("\",\"words\":\"", out);
        print_base64(out, (const unsigned char *)words, length);
        fputs("\",\"ids\":\"", out);
        print_base64(out, ids, 2 * (size_t)corpus->n);
        fputs("\"}", out);
    }
    free(words);
    mg_free(ids);
    return status;
}

static mg_status load(mg_corpus **corpus, const char *path, mg_error *error) {
    mg_data_options options = {.path = path, .grammar_size = WORDS, .seed = 1337};
    mg_status status = mg_corpus_load(corpus, &options, error);
    if (status) return status;
    if (!(*corpus)->grammar)
        status = mg_error_set(error, MG_ERR_INPUT,
                              "%s is not a grammar: the page needs one, since its floors are computed from it", path);
    else if (mg_tokenizer_size((*corpus)->tokenizer) > MOST_VOCABULARY)
        status = mg_error_set(error, MG_ERR_INPUT, "%s has %d words; the page can have %d", path,
                              mg_tokenizer_size((*corpus)->tokenizer), MOST_VOCABULARY);
    if (status) {
        mg_corpus_free(*corpus);
        *corpus = NULL;
    }
    return status;
}

/* ---- The page ---- */

/* PREFIX/share/maskgrad beside PREFIX/bin/maskgrad, or the build folder, beside the program. */
static void page_path(char *path, size_t size) {
    char folder[2048];
    mg_program_folder(0, folder, sizeof folder);
    snprintf(path, size, "%s/playground.html", folder);
    if (access(path, R_OK) == 0) return;
    mg_program_folder(1, folder, sizeof folder);
    snprintf(path, size, "%s/" MASKGRAD_DATA_DIR "/playground.html", folder);
}

static mg_status write_page(const playground_options *o, const mg_corpus *corpus, mg_error *error) {
    static const char place[] = "id=\"data\">DATA<";
    char path[4096], *page;
    size_t length;
    page_path(path, sizeof path);
    if (access(path, R_OK) != 0)
        return mg_error_set(error, MG_ERR_IO,
                            "this program was built without the page, for which clang, lld, wasi-libc and "
                            "libclang-rt-14-dev-wasm32 must be there: install them and build again");
    mg_status status = mg_read_text(path, MOST_PAGE, &page, &length, error);
    if (status) return status;
    char *at = strstr(page, place);
    mg_atomic_text text;
    if (!at)
        status = mg_error_set(error, MG_ERR_FORMAT, "%s is not maskgrad's page: it has no place for the data", path);
    else
        status = mg_atomic_text_begin(&text, o->out, error);
    if (status) {
        mg_free(page);
        return status;
    }
    at += strcspn(at, ">") + 1;
    fwrite(page, 1, (size_t)(at - page), text.out);
    status = print_data(text.out, corpus, error);
    fputs(at + strlen("DATA"), text.out);
    mg_free(page);
    return mg_atomic_text_finish(&text, status, error);
}

static int run_command(int argc, char **argv) {
    playground_options options = {0};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    mg_flags_parse(&line, tables, argc, argv, NULL, NULL);
    if (!options.out) mg_usage_error(&line, "--out is missing, as in --out page.html");
    if (!options.data) mg_usage_error(&line, "--data is missing, as in --data sentences.csv");
    mg_error error;
    mg_corpus *corpus = NULL;
    mg_status status = load(&corpus, options.data, &error);
    if (status == MG_OK) status = write_page(&options, corpus, &error);
    mg_corpus_free(corpus);
    return mg_command_end(&line, status, &error);
}

const mg_command mg_playground_command = {"playground", N_("Write a page in which two models train, one mask apart"),
                                          run_command};
