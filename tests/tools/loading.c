/* loading FILE [TOKENS [COLUMN [MERGES]]]: load a corpus ('-' leaves a word out) and print, as one CSV row,
 *
 *     megabytes of the file, processor seconds, megabytes per such second, tokens, bytes of memory per token beyond the file
 *
 * The memory is the peak of this process while it loads, so each measurement takes a process of its own. */
#include "corpus.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static const mg_data_options usual = {.validation = 0.1, .seed = 1337};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024. * (double)usage.ru_maxrss;
}

static const char *word(int argc, char **argv, int i) {
    return i < argc && strcmp(argv[i], "-") != 0 ? argv[i] : NULL;
}

int main(int argc, char **argv) {
    struct stat file;
    if (argc < 2 || stat(argv[1], &file) != 0) {
        fprintf(stderr, "usage: loading FILE [TOKENS [COLUMN [MERGES]]]\n");
        return 2;
    }
    mg_data_options options = usual;
    options.path = argv[1];
    options.tokens = word(argc, argv, 2);
    options.column = word(argc, argv, 3);
    options.merges = word(argc, argv, 4);
    mg_corpus *corpus;
    mg_error error;
    double memory = peak_bytes(), start = now();
    if (mg_corpus_load(&corpus, &options, &error) != MG_OK) {
        fprintf(stderr, "loading: %s\n", error.message);
        return 1;
    }
    double seconds = now() - start, size = (double)file.st_size, beyond = peak_bytes() - memory - size;
    printf("%.1f,%.2f,%.0f,%td,%.1f\n", size / 1e6, seconds, size / 1e6 / seconds, corpus->n,
           beyond / (double)corpus->n);
    mg_corpus_free(corpus);
    return 0;
}
