/* Data as people have it: tables of other programs, encodings, folders, several files, documents. */
#define _GNU_SOURCE
#include "corpus.h"
#include "csv_table.h"
#include "data_files.h"
#include "heap.h"

#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static mg_error error;
static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/maskgrad-data-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static const char *in_folder(const char *name) {
    static char path[8][256];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static const char *put_bytes(const char *name, const char *bytes, size_t n) {
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return path;
}

static const char *put(const char *name, const char *text) {
    return put_bytes(name, text, strlen(text));
}

static mg_corpus *load(mg_data_options options) {
    mg_corpus *corpus;
    mg_status status = mg_corpus_load(&corpus, &options, &error);
    if (status != MG_OK) print_error("%s\n", error.message);
    assert_int_equal(status, MG_OK);
    return corpus;
}

static void assert_text(const mg_corpus *c, const char *expected) {
    char *text;
    size_t length;
    assert_int_equal(mg_tokenizer_decode(&text, &length, c->tokenizer, c->ids, (size_t)c->n, &error), MG_OK);
    assert_string_equal(text, expected);
    mg_free(text);
}

static void assert_reads(mg_data_options options, const char *expected, const char *warning) {
    mg_corpus *c = load(options);
    assert_text(c, expected);
    if (warning)
        assert_says(c->warning, warning);
    else
        assert_string_equal(c->warning, "");
    mg_corpus_free(c);
}

static void assert_refused(mg_data_options options, mg_status status, const char *part) {
    mg_corpus *corpus;
    assert_int_equal(mg_corpus_load(&corpus, &options, &error), status);
    assert_null(corpus);
    assert_says(error.message, part);
}

/* ---- Tables ---- */

static void any_usual_delimiter_is_found(void **state) {
    (void)state;
    static const struct {
        const char *csv, *column, *text;
    } tables[] = {
        {"id;nome;texto\n1;Ana;\"bom dia; tudo bem?\"\n2;Zé;\"diz \"\"oi\"\"\"\n", "texto",
         "bom dia; tudo bem?\ndiz \"oi\""},
        {"\xEF\xBB\xBFsep=;\r\nid;preço;texto\r\n1;3,50;um\r\n2;4,25;dois\r\n", "texto", "um\ndois"},
        {"\"sep=;\"\r\nid;texto\r\n1;um\r\n2;dois\r\n", "texto", "um\ndois"},
        {"SEP=\t\nid\ttexto\n1\tum\n2\tdois\n", "texto", "um\ndois"},
        {"id\ttexto\n1\tum, dois; três\n2\tquatro\n", "texto", "um, dois; três\nquatro"},
        {"id|text\n1|one\n2|two\n", "text", "one\ntwo"},
        {"a;b,text\n1;2,one\n3;4,two\n", "text", "one\ntwo"},
        {"a;b,text\n1;2\n3;4\n", "a", "1\n3"},
        {"text\none\ntwo;three\n", "text", "one\ntwo;three"},
        {"v1,v2,,,\nham,\"Go until, crazy\",,,\nspam,Free entry,,,\n", "v2", "Go until, crazy\nFree entry"},
        {"v1;v2;;;\nham;Go;;;\nspam;Free;;;\n", "v2", "Go\nFree"},
        {"x,x,text\n1,2,one\n3,4,two\n", "text", "one\ntwo"},
        {"\"a\nb\";texto\n1;\"linha\"\n2;x\n", "texto", "linha\nx"},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        assert_reads((mg_data_options){.path = put("t.csv", tables[i].csv), .column = tables[i].column}, tables[i].text,
                     NULL);
}

static void a_given_delimiter_decides(void **state) {
    (void)state;
    mg_data_options o = {.path = put("t.csv", "a,text;b\n1,one;2\n3,two;4\n"), .column = "text;b"};
    assert_reads(o, "one;2\ntwo;4", NULL);
    o.column = "b";
    o.delimiter = ';';
    assert_reads(o, "2\n4", NULL);
    o.column = "text;b";
    assert_refused(o, MG_ERR_INPUT, "has no column 'text;b'; it has 'a,text', 'b'");
    o.delimiter = ':';
    o.column = "a";
    o.path = put("t.csv", "a:b\n1:2\n3:4\n");
    assert_reads(o, "1\n3", NULL);
    o.column = NULL;
    assert_reads(o, "a:b\n1:2\n3:4\n", "--delimiter changes nothing");
}

static void what_a_table_lacks_is_listed_by_its_own_delimiter(void **state) {
    (void)state;
    mg_data_options o = {.path = put("t.csv", "id;nome;idade\n1;Ana;30\n"), .column = "texto"};
    assert_refused(o, MG_ERR_INPUT, "has no column 'texto'; it has 'id', 'nome', 'idade'");
    o.path = put("t.csv", "sep=;\r\nid;texto\r\n1;a\r\n2;b;c\r\n");
    assert_refused(o, MG_ERR_FORMAT, "line 4: the number of fields is 3");
    o.path = put("t.csv", "v1;v2;v2\n1;2;3\n");
    o.column = "v2";
    assert_refused(o, MG_ERR_INPUT, "has 2 columns 'v2'");
}

static void a_table_without_its_column_is_hinted_at(void **state) {
    (void)state;
    assert_reads((mg_data_options){.path = put("t.tsv", "a\tb\n")}, "a\tb\n", "--column NAME reads only the texts");
}

/* ---- Encodings ---- */

static void other_encodings_are_read_when_asked(void **state) {
    (void)state;
    static const struct {
        const char *encoding, *bytes;
        size_t n;
    } files[] = {
        {"UTF-16",
         "\xFF\xFE"
         "n\0\xE3\0o\0\n\0",
         10},
        {"UTF-16",
         "\xFE\xFF"
         "\0n\0\xE3\0o\0\n",
         10},
        {"utf-16le", "n\0\xE3\0o\0\n\0", 8},
        {"UTF-16BE", "\0n\0\xE3\0o\0\n", 8},
        {"UTF-32", "\xFF\xFE\0\0n\0\0\0\xE3\0\0\0o\0\0\0\n\0\0\0", 20},
        {"ISO-8859-1", "n\xE3o\n", 4},
        {"latin1", "n\xE3o\n", 4},
        {"WINDOWS-1252", "n\xE3o\n", 4},
        {"UTF-8", "n\xC3\xA3o\n", 5},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_reads(
            (mg_data_options){.path = put_bytes("e.txt", files[i].bytes, files[i].n), .encoding = files[i].encoding},
            "não\n", i == 8 ? "valid UTF-8" : NULL);
    assert_reads((mg_data_options){.path = put("e.csv", "id;texto\r\n1;\x93 caf\xE9 \x94\r\n2;\x80 5\r\n"),
                                   .column = "texto",
                                   .encoding = "windows-1252"},
                 "“ café ”\n€ 5", NULL);
}

/* The same text has one hash and one vocabulary, however it was stored. */
static void an_encoding_is_not_content(void **state) {
    (void)state;
    mg_corpus *a = load((mg_data_options){.path = put("a.txt", "ação\n")});
    mg_corpus *b = load((mg_data_options){.path = put("b.txt", "a\xE7\xE3o\n"), .encoding = "latin1"});
    assert_true(a->hash == b->hash);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
    mg_corpus_free(a);
    mg_corpus_free(b);
}

static void encodings_are_refused_with_their_remedy(void **state) {
    (void)state;
    mg_data_options o = {.path = put_bytes("e.txt",
                                           "\xFF\xFE"
                                           "a\0b\0",
                                           6)};
    assert_refused(o, MG_ERR_FORMAT, "UTF-16 text (little-endian), not UTF-8 text: --encoding UTF-16LE reads it");
    o.path = put("e.txt", "n\xE3o");
    assert_refused(o, MG_ERR_FORMAT, "is read with --encoding WINDOWS-1252");
    o.encoding = "UTF-16";
    assert_refused(o, MG_ERR_FORMAT, "no byte order mark");
    o.encoding = "klingon";
    assert_refused(o, MG_ERR_INPUT, "--encoding 'klingon' is unknown");
    o.encoding = "WINDOWS-1252";
    o.path = put("e.txt", "ab\x81");
    assert_refused(o, MG_ERR_FORMAT, "is not WINDOWS-1252: byte 2 (0x81) is no character");
    o.encoding = "UTF-16LE";
    o.path = put("e.txt", "abc");
    assert_refused(o, MG_ERR_FORMAT, "byte 2 (0x63) begins a character that is cut off");
    o.path = put_bytes("e.txt", "a\0\0\0b\0", 6);
    assert_refused(o, MG_ERR_FORMAT, "0 byte at offset 1");
    o.encoding = "latin1";
    o.path = put("e.txt", "\x1F\x8B\x08zip");
    assert_refused(o, MG_ERR_FORMAT, "compressed with gzip");
    o.path = put("e.txt", "n\xC3\xA3o");
    assert_reads(o, "nÃ£o", "valid UTF-8, but read as latin1");
}

/* A text of a megabyte, whose UTF-8 is longer than its bytes. */
static void a_long_text_is_converted_whole(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *bytes = mg_alloc(N, 1, "a test", NULL);
    memset(bytes, 0xE9, N);
    mg_corpus *c = load((mg_data_options){.path = put_bytes("e.txt", bytes, N), .encoding = "latin1"});
    assert_int_equal(c->n, N);
    mg_corpus_free(c);
    mg_free(bytes);
}

/* ---- Ends of lines ---- */

static void lines_end_with_one_character(void **state) {
    (void)state;
    assert_reads((mg_data_options){.path = put("r.txt", "one\r\ntwo\r\n")}, "one\ntwo\n",
                 "2 carriage returns (\\r), dropped");
    assert_reads((mg_data_options){.path = put("r.txt", "one\rtwo\n\r\r\n")}, "onetwo\n\n", "3 carriage returns");
    assert_reads((mg_data_options){.path = put("r.txt", "one\rtwo\r")}, "one\ntwo\n", "became newlines");
    assert_reads((mg_data_options){.path = put("r.csv", "t,u\r\n\"a\r\nb\",1\r\nc,2\r\n"), .column = "t"}, "a\nb\nc",
                 "1 carriage return (\\r), dropped");
    mg_corpus *model = load((mg_data_options){.path = put("r.txt", "ab\n")});
    assert_reads((mg_data_options){.path = put("r.txt", "a\r\nb\r\n"), .tokenizer = model->tokenizer}, "a\nb\n",
                 "dropped");
    mg_corpus_free(model);
}

/* ---- Files and folders ---- */

static void several_files_are_documents(void **state) {
    (void)state;
    char paths[600];
    snprintf(paths, sizeof paths, "%s\n%s\n%s", put("a.txt", "one\ntwo\n"), put("b.txt", "\xEF\xBB\xBFthree"),
             put("c.txt", "four\n"));
    mg_corpus *c = load((mg_data_options){.path = paths});
    assert_text(c, "one\ntwo\n<|endoftext|>three<|endoftext|>four\n");
    assert_int_equal(c->n, 8 + 1 + 5 + 1 + 5);
    assert_string_equal(c->name, "a.txt and 2 more");
    int end;
    assert_int_equal(mg_corpus_document_end(c, &end, &error), MG_OK);
    assert_int_equal(c->ids[8], end);
    assert_int_equal(c->ids[14], end);
    /* A model of these knows the token, and one that does not reads lines. */
    mg_corpus *again = load((mg_data_options){.path = paths, .tokenizer = c->tokenizer});
    assert_memory_equal(c->ids, again->ids, (size_t)c->n * sizeof *c->ids);
    assert_true(c->hash == again->hash);
    mg_corpus_free(again);
    mg_corpus *plain = load((mg_data_options){.path = put("d.txt", "one two three four\n")});
    assert_reads((mg_data_options){.path = paths, .tokenizer = plain->tokenizer}, "one\ntwo\nthree\nfour\n",
                 "joined by newlines");
    assert_refused((mg_data_options){.path = paths, .tokenizer = plain->tokenizer, .special = true}, MG_ERR_INPUT,
                   "no token <|endoftext|>");
    mg_corpus_free(plain);
    mg_corpus_free(c);
    assert_reads((mg_data_options){.path = paths, .tokens = "word"}, "one\ntwo\n<|endoftext|>three<|endoftext|>four\n",
                 "byte order mark");
    assert_refused((mg_data_options){.path = in_folder("a.txt\n/no/such")}, MG_ERR_IO, "'/no/such'");
}

/* An unknown character is named with the file that holds it, and its place there. */
static void an_error_names_its_file(void **state) {
    (void)state;
    char paths[600];
    snprintf(paths, sizeof paths, "%s\n%s", put("a.txt", "abab"), put("b.txt", "ab<|endoftext|>ax"));
    mg_corpus *model = load((mg_data_options){.path = put("m.txt", "ab<|endoftext|>ab"), .special = true});
    assert_refused((mg_data_options){.path = paths, .tokenizer = model->tokenizer, .special = true}, MG_ERR_INPUT,
                   "/b.txt: 'x' at byte 4");
    mg_corpus_free(model);
}

static void order_and_borders_are_content(void **state) {
    (void)state;
    char paths[4][600];
    const char *a = put("a.txt", "ab"), *b = put("b.txt", "ba"), *c = put("c.txt", "abb"), *d = put("d.txt", "a");
    snprintf(paths[0], sizeof paths[0], "%s\n%s", a, b);
    snprintf(paths[1], sizeof paths[1], "%s\n%s", b, a);
    snprintf(paths[2], sizeof paths[2], "%s\n%s", c, d);
    snprintf(paths[3], sizeof paths[3], "%s", put("e.txt", "abba"));
    uint64_t hash[4];
    for (int i = 0; i < 4; i++) {
        mg_corpus *corpus = load((mg_data_options){.path = paths[i]});
        hash[i] = corpus->hash;
        mg_corpus_free(corpus);
        for (int k = 0; k < i; k++) assert_true(hash[k] != hash[i]);
    }
}

static void a_folder_is_its_files(void **state) {
    (void)state;
    assert_int_equal(mkdir(in_folder("texts"), 0700), 0);
    assert_int_equal(mkdir(in_folder("texts/more"), 0700), 0);
    put("texts/b.txt", "two");
    put("texts/B.txt", "one");
    put("texts/c d.txt", "three");
    put("texts/more/x", "four");
    put("texts/.hidden", "\x89PNG");
    put("texts/empty", "");
    const char *expected = "one<|endoftext|>two<|endoftext|>three<|endoftext|>four";
    assert_reads((mg_data_options){.path = in_folder("texts")}, expected, "1 file of texts is empty and left out");
    assert_reads((mg_data_options){.path = in_folder("texts/")}, expected, "1 file of texts is empty and left out");
    put("texts/more/y", "\x89PNG\r\n");
    assert_refused((mg_data_options){.path = in_folder("texts")}, MG_ERR_FORMAT, "texts/more/y is a PNG picture");
    remove(in_folder("texts/more/y"));
    assert_int_equal(symlink("..", in_folder("texts/more/up")), 0);
    assert_refused((mg_data_options){.path = in_folder("texts")}, MG_ERR_FORMAT, "is a link a circle?");
    remove(in_folder("texts/more/up"));
    assert_int_equal(mkdir(in_folder("nothing"), 0700), 0);
    assert_refused((mg_data_options){.path = in_folder("nothing")}, MG_ERR_FORMAT, "holds no files with text");
}

static void tables_of_a_folder_are_one(void **state) {
    (void)state;
    assert_int_equal(mkdir(in_folder("tables"), 0700), 0);
    put("tables/1.csv", "id,text\n1,one\n2,two\n");
    put("tables/2.csv", "sep=;\r\ntext;id\r\nthree;3\r\n");
    mg_data_options o = {.path = in_folder("tables"), .column = "text"};
    assert_reads(o, "one\ntwo\nthree", NULL);
    int end;
    mg_corpus *c = load(o);
    assert_int_equal(mg_corpus_document_end(c, &end, &error), MG_OK);
    assert_int_equal(end, mg_tokenizer_newline(c->tokenizer));
    mg_corpus_free(c);
    put("tables/3.csv", "id,txt\n1,one\n");
    assert_refused(o, MG_ERR_INPUT, "tables/3.csv has no column 'text'");
}

static void standard_input_is_data(void **state) {
    (void)state;
    int before = dup(STDIN_FILENO), file = open(put("in.txt", "abcabc"), O_RDONLY);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) >= 0);
    mg_corpus *c = load((mg_data_options){.path = "-"});
    assert_text(c, "abcabc");
    assert_string_equal(c->name, "stdin");
    mg_corpus_free(c);
    assert_refused((mg_data_options){.path = "-"}, MG_ERR_FORMAT, "standard input is empty");
    dup2(before, STDIN_FILENO);
    close(before);
    close(file);
    assert_true(mg_data_is_stream("-"));
    assert_true(mg_data_is_stream("a\n-"));
    assert_false(mg_data_is_stream("-a\nb-"));
}

/* ---- <|endoftext|> ---- */

static void the_end_of_a_text_is_a_token_when_asked(void **state) {
    (void)state;
    mg_data_options o = {.path = put("s.txt", "one\n<|endoftext|>two\n<|endoftext|>")};
    mg_corpus *c = load(o);
    assert_int_equal(c->n, 8 + 26);
    assert_says(c->warning, "holds <|endoftext|> 2 times, read as plain text: --special");
    mg_corpus_free(c);
    o.special = true;
    c = load(o);
    assert_int_equal(c->n, 8 + 2);
    assert_text(c, "one\n<|endoftext|>two\n<|endoftext|>");
    assert_string_equal(c->warning, "");
    int end;
    assert_int_equal(mg_corpus_document_end(c, &end, &error), MG_OK);
    assert_int_equal(c->ids[4], end);
    assert_int_equal(mg_tokenizer_start_id(c->tokenizer), end);
    mg_corpus_free(c);
    o.path = put("s.txt", "one\ntwo");
    assert_reads(o, "one\ntwo", "--special changes nothing");
}

/* With it, a row's own newlines do not end its document. */
static void rows_may_end_with_a_token(void **state) {
    (void)state;
    mg_data_options o = {
        .path = put("s.csv", "t,u\n\"one\ntwo\",1\n\"\",2\nthree,3\n"), .column = "t", .special = true};
    mg_corpus *c = load(o);
    assert_text(c, "one\ntwo<|endoftext|><|endoftext|>three");
    int end;
    assert_int_equal(mg_corpus_document_end(c, &end, &error), MG_OK);
    assert_int_equal(c->ids[7], end);
    mg_corpus_free(c);
}

/* ---- Names ---- */

static void data_has_a_short_name(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"a.txt", "a.txt"}, {"/x/y/a.txt", "a.txt"},  {"x/texts/", "texts"},
        {"-", "stdin"},     {"a\nb", "a and 1 more"}, {"/x/a.txt\n-\nc", "a.txt and 2 more"},
        {"/", "/"}};
    char name[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mg_data_name(cases[i][0], name, sizeof name);
        assert_string_equal(name, cases[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_usual_delimiter_is_found),
        cmocka_unit_test(a_given_delimiter_decides),
        cmocka_unit_test(what_a_table_lacks_is_listed_by_its_own_delimiter),
        cmocka_unit_test(a_table_without_its_column_is_hinted_at),
        cmocka_unit_test(other_encodings_are_read_when_asked),
        cmocka_unit_test(an_encoding_is_not_content),
        cmocka_unit_test(encodings_are_refused_with_their_remedy),
        cmocka_unit_test(a_long_text_is_converted_whole),
        cmocka_unit_test(lines_end_with_one_character),
        cmocka_unit_test(several_files_are_documents),
        cmocka_unit_test(an_error_names_its_file),
        cmocka_unit_test(order_and_borders_are_content),
        cmocka_unit_test(a_folder_is_its_files),
        cmocka_unit_test(tables_of_a_folder_are_one),
        cmocka_unit_test(standard_input_is_data),
        cmocka_unit_test(the_end_of_a_text_is_a_token_when_asked),
        cmocka_unit_test(rows_may_end_with_a_token),
        cmocka_unit_test(data_has_a_short_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
