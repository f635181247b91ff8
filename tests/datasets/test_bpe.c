#include "bpe.h"
#include "byte_alphabet.h"
#include "gpt2_split.h"
#include "heap.h"
#include "rng.h"

#include "check.h"

#include <stdbool.h>
#include <stdlib.h>

static mg_tokenizer *bpe_of(const char *merges) {
    mg_tokenizer *bpe;
    mg_error error;
    if (mg_tokenizer_new_gpt2(&bpe, merges, strlen(merges), &error) != MG_OK) fail_msg("%s", error.message);
    return bpe;
}

static mg_tokenizer *shipped(void) {
    mg_tokenizer *bpe;
    mg_error error;
    if (mg_tokenizer_load_gpt2(&bpe, MASKGRAD_SOURCE_DIR "/tests/data/merges.txt", &error) != MG_OK)
        fail_msg("%s", error.message);
    return bpe;
}

/* Encode, check that the ids decode to the text, and return how many there are. */
static size_t encode(const mg_tokenizer *bpe, const char *text, size_t length, int **ids) {
    size_t n_ids, n_bytes;
    char *bytes;
    mg_error error;
    assert_int_equal(mg_tokenizer_encode(ids, &n_ids, bpe, text, length, &error), MG_OK);
    assert_int_equal(mg_tokenizer_decode(&bytes, &n_bytes, bpe, *ids, n_ids, &error), MG_OK);
    assert_int_equal(n_bytes, length);
    assert_memory_equal(bytes, text, length);
    mg_free(bytes);
    return n_ids;
}

static void assert_ids(const mg_tokenizer *bpe, const char *text, size_t n, const int *expected) {
    int *ids;
    assert_int_equal(encode(bpe, text, strlen(text), &ids), n);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], expected[i]);
    mg_free(ids);
}

static void bytes_are_numbered_and_spelled_as_in_gpt2(void **state) {
    (void)state;
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    static const int known[][2] = {{'!', 0}, {'a', 64}, {0, 188}, {'\n', 198}, {' ', 220}, {0x7F, 221}, {0xAD, 255}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(alphabet.id_of_byte[known[i][0]], known[i][1]);
    char spelled[2 * 5];
    assert_int_equal(mg_byte_alphabet_spell(&alphabet, " a\n\xAD\xE9", 5, spelled), 9);
    assert_memory_equal(spelled,
                        "\xC4\xA0"
                        "a\xC4\x8A\xC5\x83\xC3\xA9",
                        9); /* Ġ a Ċ Ń é */
    for (int byte = 0; byte < 256; byte++) {
        char as_text = (char)byte;
        int length = (int)mg_byte_alphabet_spell(&alphabet, &as_text, 1, spelled);
        assert_int_equal(mg_byte_alphabet_read(&alphabet, spelled, length), byte);
        assert_int_equal(alphabet.byte_of_id[alphabet.id_of_byte[byte]], byte);
    }
}

static void the_vocabulary_follows_from_the_merges(void **state) {
    (void)state;
    static const char *const spellings[] = {
        "#version: 0.2\nt h\nth e\n\xC4\xA0 the\n",            /* with a header, */
        "t h\nth e\n\xC4\xA0 the",                             /* without one and without the last line feed, */
        "#version: 0.2\r\nt h\r\nth e\r\n\xC4\xA0 the\r\n\r\n" /* after a checkout on Windows */
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        mg_tokenizer *bpe = bpe_of(spellings[i]);
        assert_int_equal(mg_tokenizer_get_kind(bpe), MG_TOKENIZER_GPT2);
        assert_int_equal(mg_tokenizer_size(bpe), 256 + 3 + 1);
        static const char *const made[] = {"th", "the", " the", "<|endoftext|>"};
        for (int t = 0; t < 4; t++) {
            mg_token token = mg_tokenizer_token(bpe, 256 + t);
            assert_int_equal(token.length, strlen(made[t]));
            assert_memory_equal(token.bytes, made[t], token.length);
        }
        assert_ids(bpe, "the the th", 4, (int[]){257, 258, 220, 256});
        size_t length;
        const char *merges = mg_tokenizer_merges(bpe, &length);
        assert_int_equal(length, strlen(spellings[i]));
        assert_memory_equal(merges, spellings[i], length);
        mg_tokenizer_free(bpe);
    }
}

static void end_of_text_in_a_text_is_text(void **state) {
    (void)state;
    mg_tokenizer *bpe = bpe_of("< |\n");
    int *ids;
    size_t n = encode(bpe, "<|endoftext|>", 13, &ids);
    assert_int_equal(n, 12);
    for (size_t i = 0; i < n; i++) assert_int_not_equal(ids[i], mg_tokenizer_size(bpe) - 1);
    mg_free(ids);
    mg_tokenizer_free(bpe);
}

static void assert_pieces(const char *text, size_t length, const char *const *expected) {
    mg_splitter *splitter;
    mg_split split;
    mg_error error;
    assert_int_equal(mg_splitter_new(&splitter, &error), MG_OK);
    assert_int_equal(mg_split_begin(&split, splitter, text, length, &error), MG_OK);
    for (;; expected++) {
        const char *piece;
        size_t n;
        assert_int_equal(mg_split_next(&split, &piece, &n, &error), MG_OK);
        if (!piece) break;
        assert_non_null(*expected);
        assert_int_equal(n, strlen(*expected));
        assert_memory_equal(piece, *expected, n);
    }
    assert_null(*expected);
    mg_split_end(&split);
    mg_splitter_free(splitter);
}
#define PIECES(text, ...) assert_pieces(text, sizeof text - 1, (const char *const[]){__VA_ARGS__ NULL})

static void text_is_split_as_by_gpt2(void **state) {
    (void)state;
    PIECES("", );
    PIECES("Hello world", "Hello", " world", );
    PIECES("it's they'll I'd don't we've I'm you're", "it", "'s", " they", "'ll", " I", "'d", " don", "'t", " we",
           "'ve", " I", "'m", " you", "'re", );
    PIECES("IT'S", "IT", "'", "S", ); /* only small letters contract */
    PIECES("x1y22 333,4!?", "x", "1", "y", "22", " 333", ",", "4", "!?", );
    PIECES("a  b", "a", " ", " b", ); /* the last space goes with the word */
    PIECES("a \n\n  b\n", "a", " \n\n ", " b", "\n", );
    PIECES("a\n\nb", "a", "\n", "\n", "b", );
    PIECES("a   ", "a", "   ", );
    PIECES("cora\xC3\xA7\xC3\xA3o _x", "cora\xC3\xA7\xC3\xA3o", " _", "x", );
    PIECES("e\xCC\x81", "e", "\xCC\x81", );                         /* a combining mark is no letter */
    PIECES("\xC2\xA0\xC2\xA0x", "\xC2\xA0", "\xC2\xA0", "x", );     /* U+00A0 is white space */
    PIECES("x\xC2\x85y", "x", "\xC2\x85", "y", );                   /* U+0085 too */
    PIECES("!\x1C!\xE2\x80\x8B!", "!\x1C!\xE2\x80\x8B!", );         /* U+001C and U+200B are not, */
    PIECES("!\xE1\xA0\x8E!", "!\xE1\xA0\x8E!", );                   /* nor is U+180E */
    PIECES("x\xC2\xBD\xE2\x85\xA7", "x", "\xC2\xBD\xE2\x85\xA7", ); /* one half and roman eight are numbers */
}

static void invalid_utf8_is_split_by_our_own_rule(void **state) {
    (void)state;
    PIECES("\xFF", "\xFF", );
    PIECES("ab\xFF\x80 c", "ab", "\xFF\x80", " c", );
    PIECES("a  \xFF", "a", "  ", "\xFF", ); /* the run before it is a text of its own */
    PIECES("\xF0\x9F\x98\xF0\x9F\x98\x80", "\xF0\x9F\x98", "\xF0\x9F\x98\x80", );
    PIECES("\xED\xA0\x80z\xE2\x82", "\xED\xA0\x80", "z", "\xE2\x82", );
}

/* The oracle: GPT-2's own loop, with tokens as strings. Of the pairs in the word take the one of lowest rank, merge it
 * wherever it stands, and again. */
enum { MAX_MERGES = 64, MAX_WORD = 40, MAX_TOKEN = 64 };
typedef struct oracle {
    int n_merges;
    char left[MAX_MERGES][MAX_TOKEN], right[MAX_MERGES][MAX_TOKEN];
} oracle;

static int rank_of(const oracle *o, const char *left, const char *right) {
    for (int i = 0; i < o->n_merges; i++)
        if (strcmp(o->left[i], left) == 0 && strcmp(o->right[i], right) == 0) return i;
    return MAX_MERGES;
}

static int oracle_encode(const oracle *o, const char *word, char tokens[][MAX_TOKEN]) {
    int n = 0;
    for (; word[n]; n++) snprintf(tokens[n], MAX_TOKEN, "%c", word[n]);
    for (;;) {
        int best = MAX_MERGES;
        for (int i = 0; i + 1 < n; i++) {
            int rank = rank_of(o, tokens[i], tokens[i + 1]);
            if (rank < best) best = rank;
        }
        if (best == MAX_MERGES) return n;
        int kept = 0;
        for (int i = 0; i < n; i++, kept++) {
            bool is_pair = i + 1 < n && rank_of(o, tokens[i], tokens[i + 1]) == best;
            if (kept != i) strcpy(tokens[kept], tokens[i]);
            if (is_pair) strcat(tokens[kept], tokens[++i]);
        }
        n = kept;
    }
}

/* Random merges over the letters a, b, c: each joins two tokens that exist, and makes a new one. */
static void draw_merges(oracle *o, mg_rng rng, int n, char *merges) {
    char tokens[3 + MAX_MERGES][MAX_TOKEN] = {"a", "b", "c"};
    int n_tokens = 3;
    o->n_merges = 0;
    *merges = '\0';
    for (uint64_t draw = 0; o->n_merges < n; draw += 2) {
        const char *left = tokens[mg_rng_below(rng, draw, (uint64_t)n_tokens)];
        const char *right = tokens[mg_rng_below(rng, draw + 1, (uint64_t)n_tokens)];
        char made[2 * MAX_TOKEN];
        snprintf(made, sizeof made, "%s%s", left, right);
        bool is_new = strlen(made) <= 12;
        for (int i = 0; i < n_tokens; i++) is_new = is_new && strcmp(tokens[i], made) != 0;
        if (!is_new) continue;
        sprintf(merges + strlen(merges), "%s %s\n", left, right);
        strcpy(o->left[o->n_merges], left);
        strcpy(o->right[o->n_merges++], right);
        strcpy(tokens[n_tokens++], made);
    }
}

static void the_heap_merges_as_gpt2s_loop_does(void **state) {
    (void)state;
    static oracle o;
    for (uint32_t round = 0; round < 60; round++) {
        mg_rng rng = {7, MG_STREAM_TEST, 2 * round}, words = {7, MG_STREAM_TEST, 2 * round + 1};
        char merges[MAX_MERGES * 32];
        draw_merges(&o, rng, 1 + (int)round % 60, merges);
        mg_tokenizer *bpe = bpe_of(merges);
        for (uint64_t w = 0; w < 100; w++) {
            char word[MAX_WORD + 1] = "", expected[MAX_WORD][MAX_TOKEN];
            size_t length = 1 + mg_rng_below(words, w * 64, MAX_WORD);
            for (size_t i = 0; i < length; i++) word[i] = (char)('a' + mg_rng_below(words, w * 64 + 1 + i, 3));
            int *ids;
            size_t n = encode(bpe, word, length, &ids);
            assert_int_equal(n, oracle_encode(&o, word, expected));
            for (size_t i = 0; i < n; i++)
                assert_int_equal(mg_tokenizer_token(bpe, ids[i]).length, strlen(expected[i]));
            mg_free(ids);
        }
        mg_tokenizer_free(bpe);
    }
}

static void every_byte_string_comes_back(void **state) {
    (void)state;
    mg_tokenizer *bpe = shipped();
    /* Only bytes, and bytes among what is made of the pieces that matter: letters, spaces, parts of characters. */
    static const char mixed[] = "aeo  \n'st123!\xC3\xA3\xF0\x9F\x98\x80\xE2\x82\xFF\xED\xA0";
    for (uint32_t round = 0; round < 400; round++) {
        mg_rng rng = {3, MG_STREAM_TEST, round};
        char text[300];
        size_t length = mg_rng_below(rng, 0, sizeof text);
        for (size_t i = 0; i < length; i++)
            text[i] = round % 2 ? (char)mg_rng_below(rng, i + 1, 256) : mixed[mg_rng_below(rng, i + 1, sizeof mixed)];
        int *ids;
        encode(bpe, text, length, &ids);
        mg_free(ids);
    }
    int *ids;
    assert_int_equal(encode(bpe, "", 0, &ids), 0);
    mg_free(ids);
    mg_tokenizer_free(bpe);
}

static void long_runs_finish(void **state) {
    (void)state;
    mg_tokenizer *bpe = bpe_of("a a\naa aa\naaaa aaaa\n^ ^\n\xC4\xA0 \xC4\xA0\n");
    static const struct {
        const char *unit;
        size_t length, tokens;
    } runs[] = {
        {"a", 100000, 12500},   {"^", 1000000, 500000},   {" ", 1000001, 500001},
        {"\n", 300000, 300000}, {"\xFF", 300000, 300000}, {"\xF0\x9F\x98\x80", 400000, 400000},
    };
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        char *text = malloc(runs[r].length);
        assert_non_null(text);
        for (size_t i = 0; i < runs[r].length; i++) text[i] = runs[r].unit[i % strlen(runs[r].unit)];
        int *ids;
        assert_int_equal(encode(bpe, text, runs[r].length, &ids), runs[r].tokens);
        mg_free(ids);
        free(text);
    }
    mg_tokenizer_free(bpe);
}

static void assert_refused(const char *merges, size_t length, const char *says) {
    mg_tokenizer *bpe;
    mg_error error;
    assert_int_equal(mg_tokenizer_new_gpt2(&bpe, merges, length, &error), MG_ERR_FORMAT);
    assert_null(bpe);
    assert_says(error.message, "the merges");
    assert_says(error.message, says);
}
#define REFUSED(merges, says) assert_refused(merges, sizeof merges - 1, says)

static void malformed_merges_are_refused_by_line(void **state) {
    (void)state;
    REFUSED("", "holds no merges");
    REFUSED("#version: 0.2\n\n", "holds no merges");
    REFUSED("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 456318\n", "git-lfs pointer");
    REFUSED("#version: 0.2\na b\nabc\n", "line 3: a merge is two tokens");
    REFUSED("a b\na b c\n", "line 2: a merge is two tokens");
    REFUSED("a b\na  b\n", "line 2: a merge is two tokens");
    REFUSED("a b\n b\n", "line 2: a merge is two tokens");
    REFUSED("a b\nb \n", "line 2: a merge is two tokens");
    REFUSED("a b\n\nb c\n", "line 2: a merge is two tokens");
    REFUSED("a b\nbc d\n", "line 2: no earlier line makes the token 'bc'");
    REFUSED("a bc\nb c\n", "line 1: no earlier line makes the token 'bc'");
    REFUSED("#version: 0.2\na b\nb c\na b\n", "line 4: the merge of 'a' and 'b' is already in line 2");
    REFUSED("a b\nb c\nab c\na bc\n", "line 4: the merge of 'a' and 'bc' makes the token that line 3 makes");
    REFUSED("a \xE2\x82\xAC\n", "line 1: '\xE2\x82\xAC' is not a character of GPT-2's byte alphabet");
    REFUSED("a \xC5\x84\n", "line 1: '\xC5\x84' is not a character"); /* U+0144, the first beyond */
    REFUSED("a b\na\tb c\n", "line 2: '\\t' is not");
    REFUSED("a b\n\xFF c\n", "line 2: '\\xFF' is not");
    REFUSED("a b\nc \0\n", "line 2: '\\x00' is not");
    REFUSED("< |\ne n\nd o\nf t\ne x\nt |\nen do\nft ex\n<| endo\nt| >\n<|endo ftex\n<|endoftex t|>\n",
            "line 12: the merge makes <|endoftext|>");
}

static void a_file_is_named_by_what_refuses_it(void **state) {
    (void)state;
    mg_tokenizer *bpe;
    mg_error error;
    assert_int_equal(mg_tokenizer_load_gpt2(&bpe, "/nowhere/merges.txt", &error), MG_ERR_IO);
    assert_says(error.message, "/nowhere/merges.txt");
    assert_int_equal(mg_tokenizer_load_gpt2(&bpe, MASKGRAD_SOURCE_DIR "/tests/datasets/test_bpe.c", &error),
                     MG_ERR_FORMAT);
    assert_says(error.message, "test_bpe.c, line 1: ");
    assert_null(bpe);
    mg_token token = {"a", 1};
    assert_int_equal(mg_tokenizer_new(&bpe, MG_TOKENIZER_GPT2, 1, &token, &error), MG_ERR_INPUT);
    assert_says(error.message, "merges");
}

/* Let the n-th request for memory fail, for every n, until nothing fails. The sanitizers see what is lost on the way.
 */
static size_t requests_left;

static void *limited_allocate(size_t bytes, void *user) {
    (void)user;
    if (requests_left == 0) return NULL; /* from now on, always: what can do without memory must not hide the rest */
    requests_left--;
    return aligned_alloc(MG_ALIGNMENT, (bytes / MG_ALIGNMENT + 1) * MG_ALIGNMENT);
}

static void limited_release(void *block, void *user) {
    (void)user;
    free(block);
}

static mg_status make_and_encode(mg_error *error) {
    static const char merges[] = "a b\nab c\n", text[] = "abc abc \xFF 123";
    mg_tokenizer *bpe;
    int *ids;
    size_t n;
    mg_status status = mg_tokenizer_new_gpt2(&bpe, merges, sizeof merges - 1, error);
    if (status != MG_OK) return status;
    status = mg_tokenizer_encode(&ids, &n, bpe, text, sizeof text - 1, error);
    mg_free(ids);
    mg_tokenizer_free(bpe);
    return status;
}

static void running_out_of_memory_is_an_error(void **state) {
    (void)state;
    mg_set_allocator(&(mg_allocator){limited_allocate, limited_release, NULL});
    mg_status status = MG_ERR_MEMORY;
    for (size_t n = 0; status != MG_OK; n++) {
        mg_error error = {0};
        requests_left = n;
        status = make_and_encode(&error);
        assert_true(n < 200);
        if (status == MG_OK) break;
        assert_int_equal(status, MG_ERR_MEMORY);
        assert_says(error.message, "out of memory");
    }
    mg_set_allocator(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_numbered_and_spelled_as_in_gpt2),
        cmocka_unit_test(the_vocabulary_follows_from_the_merges),
        cmocka_unit_test(end_of_text_in_a_text_is_text),
        cmocka_unit_test(text_is_split_as_by_gpt2),
        cmocka_unit_test(invalid_utf8_is_split_by_our_own_rule),
        cmocka_unit_test(the_heap_merges_as_gpt2s_loop_does),
        cmocka_unit_test(every_byte_string_comes_back),
        cmocka_unit_test(long_runs_finish),
        cmocka_unit_test(malformed_merges_are_refused_by_line),
        cmocka_unit_test(a_file_is_named_by_what_refuses_it),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
