#include "corpus.h"
#include "heap.h"

#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const mg_data_options usual = {.validation = 0.1, .seed = 1337};

static mg_error error;
static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/maskgrad-corpus-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

/* Write the bytes to a file of the test's folder, load it, and remove it. */
static mg_status load_bytes(mg_corpus **corpus, mg_data_options options, const char *bytes, size_t length) {
    char path[128];
    snprintf(path, sizeof path, "%s/data.txt", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    options.path = path;
    mg_status status = mg_corpus_load(corpus, &options, &error);
    remove(path);
    return status;
}

static mg_corpus *load(mg_data_options options, const char *text) {
    mg_corpus *corpus;
    mg_status status = load_bytes(&corpus, options, text, strlen(text));
    if (status != MG_OK) print_error("%s\n", error.message);
    assert_int_equal(status, MG_OK);
    return corpus;
}

static void assert_refused(mg_data_options options, const char *bytes, size_t length, mg_status status,
                           const char *part) {
    mg_corpus *corpus;
    assert_int_equal(load_bytes(&corpus, options, bytes, length), status);
    assert_says(error.message, part);
    assert_says(error.message, "data.txt");
    assert_null(corpus);
}

static void a_text_is_split_and_named(void **state) {
    (void)state;
    mg_corpus *c = load(usual, "abcabcabcabcabcabcab");
    assert_string_equal(c->name, "data.txt");
    assert_string_equal(c->warning, "");
    assert_int_equal(c->n, 20);
    assert_int_equal(c->n_train, 18);
    assert_null(c->grammar);
    for (int i = 0; i < 20; i++) assert_int_equal(c->ids[i], i % 3);
    mg_corpus_free(c);
}

/* FNV-1a's published value for "foobar". */
static void the_hash_is_that_of_the_bytes(void **state) {
    (void)state;
    mg_corpus *c = load(usual, "foobar");
    assert_true(c->hash == 0x85944171f73967e8u);
    mg_corpus_free(c);
}

static void what_a_user_should_know(void **state) {
    (void)state;
    mg_corpus *c = load(usual, "\xEF\xBB\xBF"
                               "ab\r\ncd\r\n");
    assert_int_equal(c->n, 6);
    assert_says(c->warning, "byte order mark");
    assert_says(c->warning, "data.txt has 2 carriage returns (\\r), dropped");
    mg_corpus_free(c);
}

static void files_that_cannot_be_used(void **state) {
    (void)state;
    mg_data_options o = usual;
    assert_refused(o, "", 0, MG_ERR_FORMAT, "is empty");
    assert_refused(o, "\xEF\xBB\xBF", 3, MG_ERR_FORMAT, "is empty");
    assert_refused(o, "a", 1, MG_ERR_FORMAT, "too short: it has 1 token,");
    assert_refused(o, "ab\0c", 4, MG_ERR_FORMAT, "0 byte at offset 2");
    assert_refused(o, "ab\xE9 c", 5, MG_ERR_FORMAT, "byte 2 (0xE9)");
    o.tokens = "bytes";
    mg_corpus *c;
    assert_int_equal(load_bytes(&c, o, "abc", 3), MG_ERR_INPUT);
    assert_says(error.message, "'bytes'");
    o.tokens = "grammar";
    assert_refused(o, "abc", 3, MG_ERR_INPUT, "only a grammar has grammar tokens");
    o.tokens = "gpt2";
    assert_refused(o, "abc", 3, MG_ERR_INPUT, "--merges FILE");
    o = usual;
    o.validation = 1;
    assert_int_equal(load_bytes(&c, o, "abc", 3), MG_ERR_INPUT);
    assert_says(error.message, "not in [0, 1)");
    o.validation = NAN;
    assert_int_equal(load_bytes(&c, o, "abc", 3), MG_ERR_INPUT);
    o = usual;
    o.path = folder;
    assert_int_equal(mg_corpus_load(&c, &o, &error), MG_ERR_FORMAT);
    assert_says(error.message, "holds no files with text");
    o.path = "/no/such/file.txt";
    assert_int_equal(mg_corpus_load(&c, &o, &error), MG_ERR_IO);
    assert_says(error.message, "'/no/such/file.txt' cannot be read: No such file");
}

static void pipes_are_read_to_their_end(void **state) {
    (void)state;
    char path[128], command[256];
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(command, sizeof command, "(for i in 1 2 3; do printf 'abcd'; sleep 0.02; done) > %s &", path);
    assert_int_equal(system(command), 0);
    mg_data_options o = usual;
    o.path = path;
    mg_corpus *c;
    assert_int_equal(mg_corpus_load(&c, &o, &error), MG_OK);
    assert_int_equal(c->n, 12);
    mg_corpus_free(c);
    remove(path);
}

static void documents_are_joined_by_newlines(void **state) {
    (void)state;
    mg_data_options o = usual;
    const char *csv = "id,text\n1,\"one, \"\"two\"\"\"\n2, three \n";
    const char *expected = "one, \"two\"\n three ";
    o.column = "text";
    mg_corpus *c = load(o, csv);
    char *text;
    size_t length;
    assert_int_equal(mg_tokenizer_decode(&text, &length, c->tokenizer, c->ids, (size_t)c->n, &error), MG_OK);
    assert_string_equal(text, expected);
    mg_free(text);
    mg_corpus_free(c);
    o.column = "body";
    assert_refused(o, csv, strlen(csv), MG_ERR_INPUT, "has no column 'body'; it has 'id', 'text'");
    o.column = "text";
    assert_refused(o, "id,text\n", 8, MG_ERR_FORMAT, "no rows");
    assert_refused(o, "id,text\n1,\"x\n", 13, MG_ERR_FORMAT, "line 2: the quoted field");
    assert_refused(o, "id,text\n1\n", 10, MG_ERR_FORMAT, "line 2: the number of fields is 1");
}

static const char coin[] = "state,word,next,weight\nA,heads,A,1\nA,tails,A,1\n";

static void assert_document_end(mg_data_options options, const char *text, const char *token, const char *why) {
    int id;
    mg_corpus *c = load(options, text);
    mg_status status = mg_corpus_document_end(c, &id, &error);
    assert_int_equal(status, token ? MG_OK : MG_ERR_INPUT);
    if (token) {
        mg_token found = mg_tokenizer_token(c->tokenizer, id);
        assert_int_equal(found.length, strlen(token));
        assert_memory_equal(found.bytes, token, found.length);
    } else {
        assert_says(error.message, why);
        assert_says(error.message, "data.txt");
    }
    mg_corpus_free(c);
}

static void a_document_ends_with_one_token(void **state) {
    (void)state;
    mg_data_options text = {0}, words = {0}, column = text, grammar = text;
    words.tokens = "word";
    column.column = "t";
    grammar.grammar_size = 100;
    assert_document_end(text, "one\ntwo", "\n", NULL);
    assert_document_end(words, "one two\n\nthree", "\n", NULL);
    assert_document_end(column, "t,u\none,1\n\"\",2\ntwo,3\n", "\n", NULL);
    assert_document_end(column, "t\none\n", NULL, "it is one document");
    assert_document_end(column, "t\n\"o\nne\"\ntwo\n", NULL, "has 1 newline inside its texts");
    assert_document_end(text, "one two", NULL, "it is one document");
    assert_document_end(grammar, "state,word,next,weight\nS,a,A,1\nA,b,A,1\nA,.,S,1\n", ".", NULL);
    assert_document_end(grammar, "state,word,next,weight\nS,a,S,1\nS,b,A,1\nA,a,S,1\n", "a", NULL);
    assert_document_end(grammar, "state,word,next,weight\nS,a,A,1\nA,!,S,1\nA,.,S,1\n", NULL,
                        "a sentence can end with '!' and with '.'");
    assert_document_end(grammar, "state,word,next,weight\nS,a,A,1\nA,a,S,1\n", NULL,
                        "'a' ends some sentences and occurs inside others");
}

static void a_grammar_is_known_by_its_header(void **state) {
    (void)state;
    mg_data_options o = usual;
    o.grammar_size = 1000;
    mg_corpus *c = load(o, coin), *again = load(o, coin);
    assert_non_null(c->grammar);
    assert_int_equal(c->n, 1000);
    assert_int_equal(c->n_train, 900);
    assert_int_equal(mg_tokenizer_get_kind(c->tokenizer), MG_TOKENIZER_GRAMMAR);
    assert_memory_equal(c->ids, again->ids, 1000 * sizeof *c->ids);
    assert_true(c->hash == again->hash);
    mg_corpus_free(again);
    o.seed++;
    again = load(o, coin);
    assert_memory_not_equal(c->ids, again->ids, 1000 * sizeof *c->ids);
    assert_true(c->hash != again->hash);
    mg_corpus_free(again);
    mg_corpus_free(c);
    assert_refused(o, "state,word,next\nA,b,A\n", 22, MG_ERR_FORMAT, "the column weight is missing");
    o.grammar_size = 1;
    assert_refused(o, coin, strlen(coin), MG_ERR_INPUT, "between 2 and");
    /* Text about states and words is text. */
    c = load(usual, "the state, the word, the next\n");
    assert_null(c->grammar);
    mg_corpus_free(c);
}

static void a_grammar_can_be_spelled_out(void **state) {
    (void)state;
    mg_data_options o = usual;
    o.grammar_size = 100;
    o.tokens = "char";
    mg_corpus *c = load(o, coin);
    assert_null(c->grammar);
    assert_int_equal(c->n, 100 * 5 + 99);
    assert_int_equal(mg_tokenizer_get_kind(c->tokenizer), MG_TOKENIZER_CHAR);
    assert_says(c->warning, "spelled out as char tokens");
    assert_says(c->warning, "leave --tokens out");
    mg_corpus_free(c);
}

/* Data for a model that exists is read with the model's tokenizer, or refused. */
static void data_meets_a_model(void **state) {
    (void)state;
    mg_data_options o = usual;
    mg_corpus *model = load(o, "abcdefgh");
    o.tokenizer = model->tokenizer;
    mg_corpus *c = load(o, "hag");
    assert_int_equal(c->ids[0], 7);
    assert_int_equal(c->ids[2], 6);
    assert_refused(o, "hat", 3, MG_ERR_INPUT, "'t' at byte 2");
    mg_corpus_free(model); /* whoever frees first */
    assert_int_equal(mg_tokenizer_size(c->tokenizer), 8);
    mg_corpus_free(c);

    o = usual;
    o.grammar_size = 10;
    model = load(o, coin);
    o.tokenizer = model->tokenizer;
    c = load(o, coin);
    assert_non_null(c->grammar);
    mg_corpus_free(c);
    const char *other = "state,word,next,weight\nA,heads,A,1\nA,tail,A,1\n";
    assert_refused(o, other, strlen(other), MG_ERR_INPUT, "'tail', but the model's is 'tails'");
    const char *longer = "state,word,next,weight\nA,heads,A,1\nA,tails,A,1\nA,edge,A,1\n";
    assert_refused(o, longer, strlen(longer), MG_ERR_INPUT, "has 3 words, but the model's grammar has 2");
    mg_corpus_free(model);
}

static void splits_that_are_too_short(void **state) {
    (void)state;
    mg_data_options o = usual;
    mg_corpus *c = load(o, "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"); /* 40 tokens: 36 and 4 */
    assert_int_equal(mg_corpus_check(c, 3, &error), MG_OK);
    assert_int_equal(mg_corpus_check(c, 4, &error), MG_ERR_INPUT);
    assert_says(error.message, "the validation split of data.txt holds 4 tokens and needs block size + 1 = 5");
    assert_says(error.message, "a larger --validation (at least 0.13), or --validation 0");
    assert_int_equal(mg_corpus_check(c, 36, &error), MG_ERR_INPUT);
    assert_says(error.message, "the training split of data.txt holds 36 tokens and needs block size + 1 = 37");
    mg_corpus_free(c);
}

/* Whatever stands for a grammar's header without being one, the user hears of it. */
static void a_header_that_is_almost_a_grammars_is_hinted_at(void **state) {
    (void)state;
    static const char *const almost[] = {
        "STATE,WORD,NEXT,WEIGHT\nA,x,A,1\n",
        "# a comment\nstate,word,next,weight\n",
        "\"State\", \"Token\", \"Next\", \"P\"\r\nA,x,A,1\r\n",
    };
    for (size_t i = 0; i < sizeof almost / sizeof *almost; i++) {
        mg_corpus *c = load(usual, almost[i]);
        assert_null(c->grammar);
        assert_says(c->warning, "as a grammar, it would begin with the line state,word,next,weight");
        mg_corpus_free(c);
    }
    static const char *const grammars[] = {
        "\xEF\xBB\xBFstate,word,next,weight\r\nA,x,A,1\r\n",
        " weight , next,word, \"state\"\n1,A,x,A\n",
        "state;word;next;weight\r\nA;x;A;1\r\n",
        "sep=;\r\nstate;word;next;weight\r\nA;x;A;1\r\n",
        "state\tword\tnext\tweight\nA\tx\tA\t1\n",
        "\n\nstate,word,next,weight\nA,x,A,1\n",
    };
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        mg_corpus *c = load(usual, grammars[i]);
        assert_non_null(c->grammar);
        mg_corpus_free(c);
    }
    static const char *const texts[] = {"the next state of the word, its weight\n", "a,b,c,d\nstate, word\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mg_corpus *c = load(usual, texts[i]);
        assert_string_equal(c->warning, "");
        mg_corpus_free(c);
    }
}

static void options_that_cannot_act_are_not_ignored(void **state) {
    (void)state;
    mg_data_options o = usual;
    o.merges = "merges.txt";
    assert_refused(o, "abcd", 4, MG_ERR_INPUT, "only gpt2 tokens need merges");
    assert_refused(o, coin, strlen(coin), MG_ERR_INPUT, "only gpt2 tokens need merges");
    o = usual;
    o.grammar_size = 500;
    mg_corpus *c = load(o, "abcd");
    assert_says(c->warning, "the grammar size changes nothing: data.txt is not a grammar");
    mg_corpus_free(c);
    o.tokens = "char";
    c = load(o, coin); /* spelled out, it is drawn all the same */
    assert_null(strstr(c->warning, "changes nothing"));
    mg_corpus_free(c);
}

/* A share that keeps no window is refused, with one that does. */
static void validation_is_never_silently_the_training_tokens(void **state) {
    (void)state;
    enum { T = 8, N = 1000 };
    char text[N + 1];
    for (int i = 0; i < N; i++) text[i] = (char)('a' + i % 26);
    text[N] = '\0';
    mg_data_options o = usual;
    static const double shares[] = {1e-300, 1e-9, 0.0009, 0.001, 0.0089};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        o.validation = shares[i];
        mg_corpus *c = load(o, text);
        assert_true(c->n_train < c->n);
        assert_int_equal(mg_corpus_check(c, T, &error), MG_ERR_INPUT);
        assert_says(error.message, "a larger --validation (at least 0.009), or --validation 0");
        o.validation = mg_corpus_least_validation(c, T);
        mg_corpus_free(c);
        c = load(o, text);
        assert_int_equal(mg_corpus_check(c, T, &error), MG_OK);
        mg_corpus_free(c);
    }
    o.validation = 1e-9; /* no share leaves a window to both */
    mg_corpus *c = load(o, "abcdefghij");
    assert_true(mg_corpus_least_validation(c, T) == 0);
    assert_int_equal(mg_corpus_check(c, T, &error), MG_ERR_INPUT);
    assert_null(strstr(error.message, "larger --validation"));
    mg_corpus_free(c);
}

static void block_plus_one_tokens_have_one_window(void **state) {
    (void)state;
    enum { T = 8 };
    mg_data_options o = usual;
    o.validation = 0;
    mg_corpus *c = load(o, "abcdefghi");
    assert_int_equal(mg_corpus_check(c, T, &error), MG_OK);
    assert_int_equal(mg_corpus_check(c, T + 1, &error), MG_ERR_INPUT);
    int ids[T], targets[T];
    for (uint32_t step = 0; step < 20; step++) {
        mg_corpus_batch(c, step % 2 ? MG_TRAIN : MG_VALIDATION, (mg_rng){1, MG_STREAM_BATCH, step}, 1, T, ids, targets);
        for (int t = 0; t < T; t++) {
            assert_int_equal(ids[t], t);
            assert_int_equal(targets[t], t + 1);
        }
    }
    assert_fails(mg_corpus_batch(c, MG_TRAIN, (mg_rng){0}, 1, T + 1, ids, targets), "from 9 tokens");
    mg_corpus_free(c);
}

/* Counting data: the target at t is x[t] + 1; offsets cover all windows of their split alike, and no other. */
static void windows_are_uniform_and_targets_are_shifted_once(void **state) {
    (void)state;
    enum { N = 100, T = 6, B = 50, STEPS = 400 };
    char text[N + 1];
    for (int i = 0; i < N; i++) text[i] = (char)(' ' + i % 95);
    text[N] = '\0';
    mg_data_options o = usual;
    o.validation = 0.2;
    mg_corpus *c = load(o, text);
    for (int i = 0; i < N; i++) c->ids[i] = i;
    for (int split = MG_TRAIN; split <= MG_VALIDATION; split++) {
        int n = split == MG_TRAIN ? 80 : 20, first = split == MG_TRAIN ? 0 : 80, n_windows = n - T;
        int count[N] = {0}, ids[B * T], targets[B * T];
        for (uint32_t step = 0; step < STEPS; step++) {
            mg_corpus_batch(c, (mg_split)split, (mg_rng){7, MG_STREAM_BATCH, step}, B, T, ids, targets);
            for (int i = 0; i < B * T; i++) assert_int_equal(targets[i], ids[i] + 1);
            for (int i = 0; i < B * T; i++) assert_int_equal(ids[i], ids[i - i % T] + i % T);
            for (int b = 0; b < B; b++) count[ids[b * T]]++;
        }
        double mean = (double)B * STEPS / n_windows;
        for (int i = 0; i < N; i++) {
            bool is_offset = i >= first && i < first + n_windows;
            assert_close(count[i], is_offset ? mean : 0, is_offset ? 5 * sqrt(mean) : 0);
        }
    }
    mg_corpus_free(c);
}

static void batches_are_a_function_of_the_rng(void **state) {
    (void)state;
    mg_data_options o = usual;
    o.grammar_size = 1000;
    mg_corpus *c = load(o, coin);
    int a[4 * 16], b[4 * 16], targets[4 * 16];
    mg_corpus_batch(c, MG_TRAIN, (mg_rng){1, MG_STREAM_BATCH, 3}, 4, 16, a, targets);
    mg_corpus_batch(c, MG_TRAIN, (mg_rng){1, MG_STREAM_BATCH, 4}, 4, 16, b, targets);
    assert_memory_not_equal(a, b, sizeof a);
    mg_corpus_batch(c, MG_TRAIN, (mg_rng){1, MG_STREAM_BATCH, 3}, 4, 16, b, targets);
    assert_memory_equal(a, b, sizeof a);
    for (int k = 0; k < 4; k++) /* however it is cut */
        mg_corpus_windows(c, MG_TRAIN, (mg_rng){1, MG_STREAM_BATCH, 3}, k, 1, 16, b + k * 16, targets);
    assert_memory_equal(a, b, sizeof a);
    mg_corpus_free(c);
}

/* Refuses one request, the one whose turn it is, and counts what is alive. */
static int turn, alive;

static void *stingy_allocate(size_t bytes, void *user) {
    (void)user;
    if (turn-- == 0) return NULL;
    alive++;
    return aligned_alloc(MG_ALIGNMENT, (bytes / MG_ALIGNMENT + 1) * MG_ALIGNMENT);
}

static void stingy_release(void *block, void *user) {
    (void)user;
    alive--;
    free(block);
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    const char *const texts[] = {"some text\n", "id,text\n1,\"a b\"\n2,c\n", coin, coin};
    const mg_allocator stingy = {stingy_allocate, stingy_release, NULL};
    for (int i = 0; i < 4; i++) {
        mg_data_options o = usual;
        o.grammar_size = 50;
        if (i == 1) o.column = "text";
        if (i == 3) o.tokens = "word";
        mg_status status = MG_ERR_MEMORY;
        mg_set_allocator(&stingy);
        for (int request = 0; status == MG_ERR_MEMORY; request++) {
            mg_corpus *c;
            assert_true(request < 1000);
            turn = request;
            status = load_bytes(&c, o, texts[i], strlen(texts[i]));
            if (status == MG_OK && c->grammar) {
                double floor[4], standard_error;
                bool is_exact;
                status = mg_grammar_floor(c->grammar, 4, floor, &standard_error, &is_exact, &error);
            }
            if (status == MG_ERR_MEMORY) assert_says(error.message, "out of memory");
            mg_corpus_free(c);
            assert_int_equal(alive, 0);
        }
        mg_set_allocator(NULL);
        assert_int_equal(status, MG_OK);
    }
}

/* A megabyte of text, also of the kinds that have been slow or deep elsewhere, takes a tenth of a second. The
 * bound leaves room for sanitizers; what is quadratic takes minutes. */
static void a_megabyte_is_quick(void **state) {
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *text = mg_alloc(LENGTH, 1, "a test", NULL);
    for (int shape = 0; shape < 3; shape++) {
        for (int i = 0; i < LENGTH; i++)
            text[i] = shape == 0 ? 'a' : shape == 1 ? '^' : "lorem ipsum, dolor sit\n"[(i + i / 977) % 23];
        for (int kind = 0; kind < 2; kind++) {
            mg_data_options o = usual;
            o.tokens = kind ? "word" : "char";
            clock_t before = clock();
            mg_corpus *c;
            mg_status status = load_bytes(&c, o, text, LENGTH);
            double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
            assert_less(seconds, 5);
            if (shape == 0 && kind == 1) { /* one word: too short */
                assert_int_equal(status, MG_ERR_FORMAT);
                continue;
            }
            assert_int_equal(status, MG_OK);
            mg_corpus_free(c);
        }
    }
    mg_free(text);
}

/* The first line of a text is no header: this took 44 s. */
static void a_first_line_may_be_long(void **state) {
    (void)state;
    enum { N = 400000 };
    char *text = mg_alloc(N, 1, "a test", NULL);
    for (int i = 0; i < N; i++) text[i] = (char)(i % 2 ? ',' : '0' + i / 2 % 10);
    clock_t before = clock();
    mg_corpus *c;
    assert_int_equal(load_bytes(&c, usual, text, N), MG_OK);
    assert_int_equal(c->n, N);
    assert_null(c->grammar);
    mg_corpus_free(c);
    mg_data_options o = usual;
    o.column = "0";
    assert_refused(o, text, N, MG_ERR_FORMAT, "at most 16384 columns");
    assert_less((double)(clock() - before) / CLOCKS_PER_SEC, 2);
    mg_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_split_and_named),
        cmocka_unit_test(the_hash_is_that_of_the_bytes),
        cmocka_unit_test(what_a_user_should_know),
        cmocka_unit_test(files_that_cannot_be_used),
        cmocka_unit_test(pipes_are_read_to_their_end),
        cmocka_unit_test(documents_are_joined_by_newlines),
        cmocka_unit_test(a_document_ends_with_one_token),
        cmocka_unit_test(a_grammar_is_known_by_its_header),
        cmocka_unit_test(a_grammar_can_be_spelled_out),
        cmocka_unit_test(a_header_that_is_almost_a_grammars_is_hinted_at),
        cmocka_unit_test(options_that_cannot_act_are_not_ignored),
        cmocka_unit_test(validation_is_never_silently_the_training_tokens),
        cmocka_unit_test(data_meets_a_model),
        cmocka_unit_test(splits_that_are_too_short),
        cmocka_unit_test(block_plus_one_tokens_have_one_window),
        cmocka_unit_test(windows_are_uniform_and_targets_are_shifted_once),
        cmocka_unit_test(batches_are_a_function_of_the_rng),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(a_megabyte_is_quick),
        cmocka_unit_test(a_first_line_may_be_long),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
