#include "gpt2_split.h"
#include "heap.h"
#include "utf8.h"

#include <stdbool.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* The pattern of GPT-2's encoder.py. White space is spelled out, since PCRE2's \s under UTF is not quite that of
 * Python's regex module and tiktoken, whose ids are the standard. */
#define SPACE "\\p{Z}\\x09-\\x0d\\x{85}"
static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+"
                              "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+";

struct mg_splitter {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *code;
};

static void *allocate(size_t bytes, void *user) {
    (void)user;
    return mg_alloc(bytes, 1, "the pattern of GPT-2's tokenizer", NULL);
}

static void release(void *block, void *user) {
    (void)user;
    mg_free(block);
}

static mg_status no_memory(mg_error *error) {
    return mg_error_set(error, MG_ERR_MEMORY, "out of memory for the pattern of GPT-2's tokenizer");
}

mg_status mg_splitter_new(mg_splitter **result, mg_error *error) {
    *result = NULL;
    mg_splitter *splitter = mg_alloc_zero(1, sizeof *splitter, "the splitter of GPT-2's tokenizer", error);
    if (!splitter) return MG_ERR_MEMORY;
    splitter->memory = pcre2_general_context_create(allocate, release, NULL);
    splitter->limits = pcre2_match_context_create(splitter->memory);
    pcre2_compile_context *compiling = pcre2_compile_context_create(splitter->memory);
    int code = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset;
    if (splitter->limits && compiling)
        splitter->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_ANCHORED, &code,
                                       &offset, compiling);
    pcre2_compile_context_free(compiling);
    if (!splitter->code) {
        mg_splitter_free(splitter);
        return no_memory(error);
    }
    /* Each alternative is one loop over one class, so a match takes time and heap in proportion to its length, and the
     * limits, made for patterns that blow up, would only refuse long runs. */
    pcre2_set_match_limit(splitter->limits, UINT32_MAX);
    pcre2_set_depth_limit(splitter->limits, UINT32_MAX);
    pcre2_set_heap_limit(splitter->limits, UINT32_MAX);
    /* Where there is no JIT, or the system forbids it, the interpreter does the same, slower. */
    pcre2_jit_compile(splitter->code, PCRE2_JIT_COMPLETE);
    *result = splitter;
    return MG_OK;
}

void mg_splitter_free(mg_splitter *splitter) {
    if (!splitter) return;
    pcre2_code_free(splitter->code);
    pcre2_match_context_free(splitter->limits);
    pcre2_general_context_free(splitter->memory);
    mg_free(splitter);
}

mg_status mg_split_begin(mg_split *split, const mg_splitter *splitter, const char *text, size_t length,
                         mg_error *error) {
    *split = (mg_split){.splitter = splitter, .text = text, .length = length};
    split->match = pcre2_match_data_create(1, splitter->memory);
    return split->match ? MG_OK : no_memory(error);
}

void mg_split_end(mg_split *split) {
    pcre2_match_data_free(split->match);
}

/* From `at`, the end of the longest run of bytes that are part of a character, or that are not. */
static size_t end_of_run(const mg_split *split, size_t at, bool is_valid) {
    while (at < split->length) {
        int next = mg_utf8_next(split->text + at, split->length - at);
        if ((next > 0) != is_valid) break;
        at += next > 0 ? (size_t)next : 1;
    }
    return at;
}

mg_status mg_split_next(mg_split *split, const char **piece, size_t *length, mg_error *error) {
    *piece = split->at < split->length ? split->text + split->at : NULL;
    *length = 0;
    if (!*piece) return MG_OK;
    if (split->at == split->run_end) split->run_end = end_of_run(split, split->at, true);
    if (split->at == split->run_end) { /* no character begins here */
        split->run_end = end_of_run(split, split->at, false);
        *length = split->run_end - split->at;
        split->at = split->run_end;
        return MG_OK;
    }
    /* The pattern has lookahead but no lookbehind: the search may treat this as the start of the run. */
    int code = pcre2_match(split->splitter->code, (PCRE2_SPTR)*piece, split->run_end - split->at, 0, PCRE2_NO_UTF_CHECK,
                           split->match, split->splitter->limits);
    if (code == PCRE2_ERROR_NOMEMORY) return no_memory(error);
    MG_CHECK(code >= 0, "GPT-2's pattern matches at every character, but PCRE2 returned %d", code);
    *length = pcre2_get_ovector_pointer(split->match)[1];
    split->at += *length;
    return MG_OK;
}
