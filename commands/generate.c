/* The command `generate`: text from a checkpoint, as it comes. */
#include "checkpoint.h"
#include "commands.h"
#include "flags.h"
#include "generator.h"
#include "heap.h"
#include "ids.h"
#include "options.h"
#include "parallel.h"
#include "say.h"
#include "speculator.h"
#include "text_printer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct generate_options {
    const char *prompt, *ids, *draft, *stop;
    int64_t n_tokens;
    int n_samples, n_draft;
    mg_sampler sampler;
    int64_t seed;
    bool cache;    /* --kv-cache: insist on it */
    bool no_cache; /* --no-kv-cache */
    bool raw;
    bool interactive;
    bool ignore_end;    /* --ignore-eos */
    bool has_mask;      /* --mask … */
    mg_gpt_config mask; /* … and what it is; the rest is not used */
    int threads;
} generate_options;

static mg_status parse_mask(const char *text, void *value, mg_error *error) {
    generate_options *o = value;
    o->has_mask = true;
    return mg_mask_parse(text, &o->mask, error);
}

static void format_mask(const void *value, char *text, size_t size) {
    const generate_options *o = value;
    text[0] = '\0';
    if (o->has_mask) mg_mask_words(&o->mask, text, size);
}

#define ROWS_OF generate_options
#include "flag_rows.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.kind = MG_SETTING_HEADING, .help = "Prompt:"},
    {.name = "prompt", .also = "p start", TEXT(prompt, "TEXT"), .help = "Text to continue"},
    {.name = "ids", TEXT(ids, "1,2,3"), .help = "Prompt as token ids; the output is ids too"},
    {.name = "interactive", .also = "i", ON(interactive), .help = "Continue each line of standard input, until its end"},
    {.kind = MG_SETTING_HEADING, .help = "Text:"},
    {.name = "stop", TEXT(stop, "TEXT"), .help = "End a sample before this text"},
    {.name = "ignore-eos", ON(ignore_end), .help = "Go on after <|endoftext|>, which ends a sample where the model has it"},
    {.name = "max-new-tokens", .also = "n n-predict", LONG_COUNT(n_tokens, 1, 1000000000), .help = "Tokens per sample"},
    {.name = "num-samples", COUNT(n_samples, 1, 1000000), .help = "Number of samples from the same prompt"},
    {.name = "temperature", .also = "temp", REAL(sampler.temperature, 0, 1000000),
     .help = "Divide the logits by X; 0: always take the most likely token"},
    {.name = "top-k", COUNT(sampler.top_k, 0, 1000000000), .help = "Sample from the N most likely tokens only (0: all)"},
    {.name = "top-p", REAL(sampler.top_p, 0, 1),
     .help = "Sample only from the fewest tokens whose probabilities add up to X (0 or 1: all)"},
    {.name = "raw", ON(raw), .help = "Write control characters unchanged to a terminal too (default: as \\xHH there)"},
    SEED_FLAG(seed, "Seed of the draws: the same seed gives the same text"),
    {.kind = MG_SETTING_HEADING, .help = "Computation:"},
    {.name = "mask", .kind = MG_SETTING_CUSTOM, .parse = parse_mask, .format = format_mask, .argument = "MASK",
     .help = "Write under another mask than the model was trained with: one that train --mask takes [the model's own]"},
    {.name = "no-kv-cache", .also = "no-cache", ON(no_cache), .help = "Recompute the whole window for each token"},
    {.name = "kv-cache", ON(cache),
     .help = "Use a KV cache, and fail if the model cannot have one (default: use it if it can)"},
    {.name = "draft", TEXT(draft, "CHECKPOINT"),
     .help = "Let this smaller model draft tokens, which CHECKPOINT judges several at a time: faster, with the "
             "same distribution of texts"},
    {.name = "draft-tokens", COUNT(n_draft, 1, 64), .help = "Tokens to draft at a time"},
    THREADS_FLAG(threads),
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "generate",
    .arguments = "CHECKPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .doc = "Generate text from a model. CHECKPOINT is a file or a run folder.\v"
           "Without a prompt the text starts after a newline; for a grammar after '.', for GPT-2 tokens after the "
           "end-of-text token, and otherwise after id 0.\n\n"
           "Beyond the context, the window slides by one token, and every token costs a whole window, with or without "
           "the cache; both give the same text.\n\n"
           "With --draft, the same seed gives another text of the same distribution, and at --temperature 0 the same "
           "text. Beyond the context nothing is drafted.",
};

/* ---- The prompt ---- */

typedef struct prompt {
    int *ids;
    size_t n;
    bool is_empty; /* ids holds the id that precedes a text, which is not printed */
} prompt;

static bool has_text(const mg_checkpoint *checkpoint) {
    return checkpoint->tokenizer && mg_tokenizer_get_kind(checkpoint->tokenizer) != MG_TOKENIZER_NONE;
}

static mg_status read_prompt(prompt *p, const generate_options *o, const mg_checkpoint *checkpoint, mg_error *error) {
    const mg_tokenizer *tokenizer = checkpoint->tokenizer;
    int vocab_size = mg_gpt_get_config(checkpoint->gpt)->vocab_size;
    if (o->ids) return mg_ids_parse(o->ids, vocab_size, &p->ids, &p->n, error);
    if (o->prompt && o->prompt[0]) {
        if (!has_text(checkpoint))
            return mg_error_set(error, MG_ERR_INPUT, "the checkpoint has no tokenizer: give the prompt with --ids");
        mg_error reason;
        mg_status status = mg_tokenizer_encode(&p->ids, &p->n, tokenizer, o->prompt, strlen(o->prompt), &reason);
        if (status != MG_OK)
            return mg_error_set(error, status, "%s%s", o->interactive ? "" : "--prompt: ", reason.message);
        if (p->n > 0) return MG_OK;
        mg_free(p->ids); /* only white space: no tokens in a grammar */
    }
    p->is_empty = true;
    p->ids = mg_alloc(1, sizeof *p->ids, "a prompt", error);
    if (!p->ids) return MG_ERR_MEMORY;
    p->ids[0] = tokenizer ? mg_tokenizer_start_id(tokenizer) : 0;
    p->n = 1;
    return MG_OK;
}

/* ---- Samples ---- */

static const char BETWEEN[] = "---------------";

/* Who writes: the model by itself, or with another that drafts. */
typedef struct writer {
    mg_generator *generator;   /* or NULL */
    mg_speculator *speculator; /* or NULL */
} writer;

static void begin_sample(mg_text_printer *p, FILE *out, const generate_options *o, const prompt *start,
                         const mg_tokenizer *tokenizer) {
    *p = mg_text_printer_begin(out, tokenizer, o->raw || !isatty(STDOUT_FILENO));
    for (size_t i = 0; i < start->n && !start->is_empty; i++) mg_text_printer_token(start->ids[i], p);
    mg_text_printer_stop(p, o->stop, !o->ignore_end);
}

static mg_status print_sample(const writer *w, const generate_options *o, const prompt *start,
                              const mg_tokenizer *tokenizer, int sample, mg_error *error) {
    mg_text_printer p;
    uint64_t seed = (uint64_t)o->seed;
    uint32_t number = (uint32_t)sample;
    begin_sample(&p, stdout, o, start, tokenizer);
    mg_status status =
        w->speculator
            ? mg_speculate(w->speculator, &o->sampler, seed, number, o->n_tokens, mg_text_printer_token, &p, error)
            : mg_generate(w->generator, &o->sampler, seed, number, o->n_tokens, mg_text_printer_token, &p, error);
    mg_text_printer_end(&p);
    return status;
}

/* A sample that waits until those before it are printed. */
typedef struct page {
    mg_text_printer printer; /* into the text, and of the first sample to stdout */
    char *text;
    size_t length;
} page;

typedef struct pages {
    page *page;   /* n of them */
    int first, n; /* samples */
} pages;

static mg_status open_pages(pages *s, const generate_options *o, const prompt *start, const mg_tokenizer *tokenizer,
                            mg_error *error) {
    s->page = mg_alloc_zero((size_t)s->n, sizeof *s->page, "samples", error);
    if (!s->page) return MG_ERR_MEMORY;
    for (int i = 0; i < s->n; i++) {
        FILE *out = i == 0 ? stdout : open_memstream(&s->page[i].text, &s->page[i].length);
        if (!out) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for the samples");
        begin_sample(&s->page[i].printer, out, o, start, tokenizer);
    }
    return MG_OK;
}

/* Print those after the first, if all went well. */
static mg_status close_pages(pages *s, mg_status status, mg_error *error) {
    for (int i = 1; s->page && i < s->n; i++) {
        page *p = &s->page[i];
        if (!p->printer.out) break;
        mg_text_printer_end(&p->printer);
        if (fclose(p->printer.out) != 0 && status == MG_OK)
            status = mg_error_set(error, MG_ERR_MEMORY, "out of memory for the samples");
        if (status == MG_OK) printf("%s\n", BETWEEN), fwrite(p->text, 1, p->length, stdout);
        free(p->text);
    }
    mg_free(s->page);
    return status;
}

static bool print_on_page(uint32_t sample, int id, void *user) {
    pages *s = user;
    return mg_text_printer_token(id, &s->page[(int)sample - s->first].printer) && !ferror(stdout);
}

static mg_status print_side_by_side(const writer *w, const generate_options *o, const prompt *start,
                                    const mg_tokenizer *tokenizer, int first, int n, mg_error *error) {
    pages s = {.first = first, .n = n};
    mg_status status = open_pages(&s, o, start, tokenizer, error);
    if (status == MG_OK) {
        status = mg_generate_samples(w->generator, &o->sampler, (uint64_t)o->seed, (uint32_t)first, n, o->n_tokens,
                                     print_on_page, &s, error);
        mg_text_printer_end(&s.page[0].printer);
    }
    return close_pages(&s, status, error);
}

/* One by one if a sample is so long that keeping others meanwhile takes memory. */
static mg_status print_samples(const writer *w, const generate_options *o, const prompt *start,
                               const mg_tokenizer *tokenizer, mg_error *error) {
    enum { AT_ONCE = 64, LONG = 1 << 20 };
    int at_once = w->speculator || o->n_tokens > LONG ? 1 : AT_ONCE;
    mg_status status = MG_OK;
    for (int done = 0; done < o->n_samples && status == MG_OK && !ferror(stdout); done += at_once) {
        int n = o->n_samples - done < at_once ? o->n_samples - done : at_once;
        if (done > 0) puts(BETWEEN);
        status = n == 1 ? print_sample(w, o, start, tokenizer, done, error)
                        : print_side_by_side(w, o, start, tokenizer, done, n, error);
    }
    return status;
}

/* ---- All of it ---- */

/* A draft's ids must mean the same tokens. */
static mg_status check_draft(const generate_options *o, const mg_checkpoint *checkpoint, const mg_checkpoint *draft,
                             mg_error *error) {
    const mg_tokenizer *own = checkpoint->tokenizer, *other = draft->tokenizer;
    int V = mg_gpt_get_config(checkpoint->gpt)->vocab_size, draft_V = mg_gpt_get_config(draft->gpt)->vocab_size;
    if (V == draft_V && (own && other ? mg_tokenizer_equal(own, other) : own == other)) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT,
                        "--draft %s has another vocabulary than the model: both must be trained with the same tokens",
                        o->draft);
}

static void tell_speed(const mg_speculator *speculator) {
    mg_speculation c = mg_speculator_counts(speculator);
    mg_say("generate", "%.2f tokens per pass of the model; %.0f%% of %s stayed", (double)c.written / (double)c.passes,
           c.used ? 100 * (double)c.stayed / (double)c.used : 0, mg_count(c.used, "drafted token").text);
}

static mg_status choose_cache(bool *cache, const generate_options *o, const mg_gpt_config *config, mg_error *error) {
    *cache = mg_gpt_is_causal(config) && !o->no_cache;
    if (mg_gpt_is_causal(config)) return MG_OK;
    char mask[128];
    mg_mask_words(config, mask, sizeof mask);
    if (o->cache)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--kv-cache cannot be used: the mask is '%s', so every new token "
                            "changes the keys and values of the earlier ones, so a cache would be wrong",
                            mask);
    mg_say("generate", "%s mask '%s'%s; it runs without a KV cache, which would give wrong results",
           o->has_mask ? "the model writes under" : "this model was trained with", mask,
           o->has_mask ? "" : " and learned to read what it should predict");
    return MG_OK;
}

/* --mask. Which token ends a document, only a model that was trained with documents knows here. */
static mg_status set_mask(mg_gpt *gpt, const generate_options *o, mg_error *error) {
    const mg_gpt_config own = *mg_gpt_get_config(gpt);
    if (!o->has_mask) return MG_OK;
    if (o->mask.documents && !own.documents)
        return mg_error_set(
            error, MG_ERR_INPUT,
            "--mask documents needs a model that was trained with it: this one does not say which token "
            "ends a document");
    mg_gpt_config asked = o->mask;
    asked.document_end = own.document_end;
    mg_gpt_see_as(gpt, &asked);
    return MG_OK;
}

/* Prepare the writer and give it the prompt. */
static mg_status set_up(writer *w, const generate_options *o, const mg_checkpoint *checkpoint,
                        const mg_checkpoint *draft, int n_ids, const prompt *start, mg_error *error) {
    if (draft) {
        mg_status status = mg_speculator_new(&w->speculator, checkpoint->gpt, draft->gpt, n_ids, o->n_draft, error);
        if (status != MG_OK) return status;
        mg_speculator_prompt(w->speculator, start->ids, (ptrdiff_t)start->n);
        return mg_speculator_check(w->speculator, error);
    }
    bool cache;
    mg_status status = choose_cache(&cache, o, mg_gpt_get_config(checkpoint->gpt), error);
    if (status == MG_OK) status = mg_generator_new(&w->generator, checkpoint->gpt, n_ids, cache, error);
    if (status != MG_OK) return status;
    mg_generator_prompt(w->generator, start->ids, (ptrdiff_t)start->n);
    return mg_gpt_check_logits(checkpoint->gpt, mg_generator_logits(w->generator),
                               mg_gpt_get_config(checkpoint->gpt)->vocab_size, error);
}

/* `draft` may be NULL. */
static mg_status generate(const generate_options *o, const prompt *start, const mg_checkpoint *checkpoint,
                          const mg_checkpoint *draft, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(checkpoint->gpt);
    const mg_tokenizer *tokenizer = has_text(checkpoint) ? checkpoint->tokenizer : NULL;
    int n_ids = tokenizer ? mg_tokenizer_size(tokenizer) : INT_MAX;
    writer w = {0};
    if (start->n > (size_t)config->block_size)
        mg_say("generate",
               "the prompt has %zu tokens, but the context is %s: the start of the prompt is "
               "left out",
               start->n, mg_count(config->block_size, "token").text);
    mg_status status = set_up(&w, o, checkpoint, draft, n_ids, start, error);
    if (status == MG_OK) status = print_samples(&w, o, start, o->ids ? NULL : tokenizer, error);
    if (status == MG_OK && w.speculator) tell_speed(w.speculator);
    mg_generator_free(w.generator);
    mg_speculator_free(w.speculator);
    return status;
}

static mg_status generate_once(const generate_options *o, const mg_checkpoint *checkpoint, const mg_checkpoint *draft,
                               mg_error *error) {
    prompt start = {0};
    mg_status status = read_prompt(&start, o, checkpoint, error);
    if (status == MG_OK) status = generate(o, &start, checkpoint, draft, error);
    mg_free(start.ids);
    return status;
}

static mg_status load(const char *asked, mg_checkpoint *checkpoint, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    return mg_checkpoint_load(checkpoint, path, false, error);
}

/* Each line is a prompt of its own; what cannot be a prompt is named, and the next line is read. */
static mg_status converse(generate_options *o, const mg_checkpoint *checkpoint, const mg_checkpoint *draft,
                          mg_error *error) {
    char *text = NULL;
    size_t room = 0;
    mg_status status = MG_OK;
    bool asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!has_text(checkpoint))
        return mg_error_set(error, MG_ERR_INPUT,
                            "the checkpoint has no tokenizer, so it cannot read --interactive's lines: give the prompt "
                            "with --ids");
    for (int64_t number = 1; status == MG_OK && !ferror(stdout); number++) {
        if (asks) fputs("> ", stdout), fflush(stdout);
        ssize_t n = getline(&text, &room, stdin);
        if (n < 0) break;
        if (n > 0 && text[n - 1] == '\n') text[n - 1] = '\0';
        o->prompt = text;
        prompt start = {0};
        status = read_prompt(&start, o, checkpoint, error);
        if (status == MG_OK) {
            status = generate(o, &start, checkpoint, draft, error);
        } else if (status == MG_ERR_INPUT) {
            mg_say("generate", "line %" PRId64 ": %s", number, error->message);
            status = MG_OK;
        }
        mg_free(start.ids);
        o->seed = o->seed < INT64_MAX ? o->seed + 1 : 0;
    }
    if (asks) putchar('\n');
    free(text);
    return status;
}

static int run_command(int argc, char **argv) {
    generate_options options = {
        .n_tokens = 200, .n_samples = 1, .n_draft = 4, .sampler = {.temperature = 0.8, .top_p = 1}, .seed = 1337};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    const char *asked;
    mg_given given;
    mg_flags_parse(&line, tables, argc, argv, &asked, &given);
    if (options.prompt && options.ids) mg_usage_error(&line, "--prompt and --ids are two prompts: give one");
    if (options.interactive && (options.prompt || options.ids))
        mg_usage_error(&line, "--interactive takes its prompts from standard input: leave out --prompt and --ids");
    if (options.stop && !options.stop[0]) mg_usage_error(&line, "--stop is empty: give the text to end before");
    if (options.stop && strlen(options.stop) >= MG_LONGEST_STOP)
        mg_usage_error(&line, "--stop takes a text of at most %d bytes", MG_LONGEST_STOP - 1);
    if (options.ids) mg_warn_idle(&line, &given, "stop ignore-eos", "with --ids, the output is ids");
    if (options.cache && options.no_cache) mg_usage_error(&line, "--kv-cache and --no-kv-cache contradict each other");
    if (options.draft && options.no_cache)
        mg_usage_error(&line, "--draft works with KV caches: it cannot be combined with --no-kv-cache");
    if (!options.draft) mg_warn_idle(&line, &given, "draft-tokens", "no model drafts without --draft CHECKPOINT");
    if (options.sampler.temperature == 0)
        mg_warn_idle(&line, &given, "top-k top-p seed num-samples",
                     "--temperature 0 always takes the most likely token");
    mg_set_threads(options.threads);

    mg_error error;
    mg_checkpoint checkpoint, draft = {0};
    mg_status status = load(asked, &checkpoint, &error);
    if (status == MG_OK && options.draft) status = load(options.draft, &draft, &error);
    mg_heap_trim();
    if (status == MG_OK) status = mg_sampler_check(&options.sampler, &error);
    if (status == MG_OK) status = set_mask(checkpoint.gpt, &options, &error);
    if (status == MG_OK && options.draft) status = check_draft(&options, &checkpoint, &draft, &error);
    if (status == MG_OK)
        status = options.interactive ? converse(&options, &checkpoint, options.draft ? &draft : NULL, &error)
                                     : generate_once(&options, &checkpoint, options.draft ? &draft : NULL, &error);
    mg_checkpoint_free(&checkpoint);
    mg_checkpoint_free(&draft);
    return mg_command_end(&line, status, &error);
}

const mg_command mg_generate_command = {"generate", N_("Generate text from a model"), run_command};
