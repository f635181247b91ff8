/* The command `generate`: text from a checkpoint, as it comes. */
#include "checkpoint.h"
#include "commands.h"
#include "flags.h"
#include "generator.h"
#include "heap.h"
#include "ids.h"
#include "options.h"
#include "parallel.h"
#include "printable.h"
#include "say.h"
#include "speculator.h"
#include "tokenizer_internal.h"
#include "utf8.h"

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

static bool has_text(const mg_checkpoint *checkpoint) {
    return checkpoint->tokenizer && mg_tokenizer_get_kind(checkpoint->tokenizer) != MG_TOKENIZER_NONE;
}

/* ---- The prompt ---- */

typedef struct prompt {
    int *ids;
    size_t n;
    bool is_empty; /* ids holds the id that precedes a text, which is not printed */
} prompt;

static mg_status read_prompt(prompt *p, const generate_options *o, const mg_checkpoint *checkpoint, mg_error *error) {
    const mg_tokenizer *tokenizer = checkpoint->tokenizer;
    int vocab_size = mg_gpt_get_config(checkpoint->gpt)->vocab_size;
    if (o->ids) return mg_ids_parse(o->ids, vocab_size, &p->ids, &p->n, error);
    if (o->prompt && o->prompt[0]) {
        if (!tokenizer)
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

/* ---- Printing ---- */

enum { LONGEST_STOP = 256 };

typedef struct printer {
    const mg_tokenizer *tokenizer; /* NULL: ids */
    mg_utf8_stream stream;
    int previous; /* -1: nothing was printed yet */
    bool raw;     /* control characters too */
    /* What ends a sample, once the prompt is printed: the token end_id (-1: none), or this text ("": none). */
    int end_id;
    const char *stop;
    char held[LONGEST_STOP]; /* printed already, but for what `stop` begins with */
    size_t n_held;
    bool done;
} printer;

/* Whole characters. A vocabulary may hold control characters, which a terminal would obey. */
static void print_characters(const printer *p, const char *text, size_t length) {
    char shown[MG_PRINTABLE_ROOM(MG_UTF8_ROOM(256))];
    if (p->raw)
        fwrite(text, 1, length, stdout);
    else
        fwrite(shown, 1, mg_printable(shown, sizeof shown, text, length, "\n\t"), stdout);
}

static void print_bytes(printer *p, const char *bytes, size_t length) {
    char printable[MG_UTF8_ROOM(256)];
    for (size_t done = 0; done < length;) {
        size_t n = length - done < 256 ? length - done : 256;
        print_characters(p, printable, mg_utf8_push(&p->stream, bytes + done, n, printable));
        done += n;
    }
}

/* Bytes that may begin the text that ends a sample are held back until it is clear. */
static void print_until_stop(printer *p, const char *bytes, size_t length) {
    size_t n_stop = p->stop ? strlen(p->stop) : 0;
    if (n_stop == 0) print_bytes(p, bytes, length);
    for (size_t i = 0; n_stop > 0 && i < length && !p->done; i++) {
        p->held[p->n_held++] = bytes[i];
        while (p->n_held > 0 && memcmp(p->held, p->stop, p->n_held) != 0) {
            print_bytes(p, p->held, 1);
            memmove(p->held, p->held + 1, --p->n_held);
        }
        p->done = p->n_held == n_stop;
    }
    if (p->done) p->n_held = 0;
}

/* false: no more text is needed. */
static bool print_token(int id, void *user) {
    printer *p = user;
    p->done = p->done || (id == p->end_id && id >= 0);
    if (p->done) return false;
    if (p->tokenizer) {
        const char *separator = mg_tokenizer_separator(p->tokenizer, p->previous, id);
        mg_token token = mg_tokenizer_token(p->tokenizer, id);
        print_until_stop(p, separator, strlen(separator));
        print_until_stop(p, token.bytes, token.length);
    } else {
        printf(p->previous < 0 ? "%d" : ",%d", id);
    }
    p->previous = id;
    return fflush(stdout) == 0 && !p->done; /* a reader that went away needs no more text */
}

/* Who writes: the model by itself, or with another that drafts. */
typedef struct writer {
    mg_generator *generator;   /* or NULL */
    mg_speculator *speculator; /* or NULL */
} writer;

static printer new_printer(const generate_options *o, const mg_tokenizer *tokenizer) {
    return (printer){.tokenizer = tokenizer, .previous = -1, .end_id = -1, .raw = o->raw || !isatty(STDOUT_FILENO)};
}

static void print_prompt(printer *p, const generate_options *o, const prompt *start) {
    for (size_t i = 0; i < start->n && !start->is_empty; i++) print_token(start->ids[i], p);
    if (!p->tokenizer) return;
    p->stop = o->stop;
    if (!o->ignore_end) p->end_id = mg_tokenizer_end_of_text(p->tokenizer);
}

static void end_sample(printer *p, bool others_follow) {
    char last[3];
    print_bytes(p, p->held, p->n_held);
    p->n_held = 0;
    fwrite(last, 1, mg_utf8_flush(&p->stream, last), stdout);
    putchar('\n');
    if (others_follow) puts("---------------");
}

static mg_status print_sample(const writer *w, const generate_options *o, const prompt *start,
                              const mg_tokenizer *tokenizer, int sample, mg_error *error) {
    printer p = new_printer(o, tokenizer);
    print_prompt(&p, o, start);
    uint64_t seed = (uint64_t)o->seed;
    uint32_t number = (uint32_t)sample;
    mg_status status = w->speculator
                           ? mg_speculate(w->speculator, &o->sampler, seed, number, o->n_tokens, print_token, &p, error)
                           : mg_generate(w->generator, &o->sampler, seed, number, o->n_tokens, print_token, &p, error);
    end_sample(&p, status == MG_OK && sample + 1 < o->n_samples);
    return status;
}

/* Samples that are drawn side by side: the first is printed as it comes, the others after it. */
typedef struct chunk {
    printer first_printer;
    int first;
    ptrdiff_t n; /* tokens per sample */
    int *ids;    /* (samples, n) */
    ptrdiff_t *drawn;
    bool reader_left;
} chunk;

static bool take_token(uint32_t sample, int id, void *user) {
    chunk *s = user;
    ptrdiff_t i = (ptrdiff_t)sample - s->first;
    s->ids[i * s->n + s->drawn[i]++] = id;
    if (i == 0 && !print_token(id, &s->first_printer) && !s->first_printer.done) s->reader_left = true;
    return !s->reader_left;
}

static mg_status print_side_by_side(const writer *w, const generate_options *o, const prompt *start,
                                    const mg_tokenizer *tokenizer, int first, int n_samples, mg_error *error) {
    chunk s = {.first_printer = new_printer(o, tokenizer), .first = first, .n = o->n_tokens};
    s.ids = mg_alloc((size_t)n_samples * (size_t)s.n, sizeof *s.ids, "samples", error);
    s.drawn = mg_alloc_zero((size_t)n_samples, sizeof *s.drawn, "samples", error);
    mg_status status = s.ids && s.drawn ? MG_OK : MG_ERR_MEMORY;
    if (status == MG_OK) {
        print_prompt(&s.first_printer, o, start);
        status = mg_generate_samples(w->generator, &o->sampler, (uint64_t)o->seed, (uint32_t)first, n_samples, s.n,
                                     take_token, &s, error);
        end_sample(&s.first_printer, status == MG_OK && first + 1 < o->n_samples);
    }
    for (int i = 1; i < n_samples && status == MG_OK && !s.reader_left; i++) {
        printer p = new_printer(o, tokenizer);
        print_prompt(&p, o, start);
        for (ptrdiff_t k = 0; k < s.drawn[i] && !s.reader_left && !p.done; k++)
            s.reader_left = !print_token(s.ids[i * s.n + k], &p) && !p.done;
        end_sample(&p, first + i + 1 < o->n_samples);
    }
    mg_free(s.ids);
    mg_free(s.drawn);
    return status;
}

/* How many to draw side by side: one by one if a sample is so long that keeping others meanwhile takes memory. */
static int side_by_side(const writer *w, const generate_options *o) {
    enum { AT_ONCE = 64, LONG = 1 << 20 };
    return w->speculator || o->n_tokens > LONG ? 1 : AT_ONCE;
}

static mg_status print_samples(const writer *w, const generate_options *o, const prompt *start,
                               const mg_tokenizer *tokenizer, mg_error *error) {
    mg_status status = MG_OK;
    int at_once = side_by_side(w, o);
    for (int done = 0; done < o->n_samples && status == MG_OK && !ferror(stdout); done += at_once) {
        int n = o->n_samples - done < at_once ? o->n_samples - done : at_once;
        if (n == 1)
            status = print_sample(w, o, start, tokenizer, done, error);
        else
            status = print_side_by_side(w, o, start, tokenizer, done, n, error);
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
    mg_gpt_set_mask(gpt, asked.mask);
    mg_gpt_set_documents(gpt, &asked);
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
    if (options.stop && strlen(options.stop) >= LONGEST_STOP)
        mg_usage_error(&line, "--stop takes a text of at most %d bytes", LONGEST_STOP - 1);
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

const mg_command mg_generate_command = {"generate", "Generate text from a model", run_command};
