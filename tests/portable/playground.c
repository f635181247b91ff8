/* What the playground's page computes, natively: playground IDS none|causal STEPS prints the hash of the weights. IDS is
 * the page's corpus, 16 bits per id; the other numbers are the page's defaults. */
#include "playground.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    FILE *file = argc == 5 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: playground IDS VOCABULARY causal|none STEPS\n");
        return 2;
    }
    static unsigned char bytes[1 << 20];
    int n = (int)fread(bytes, 2, sizeof bytes / 2, file), *ids = playground_corpus(n);
    fclose(file);
    for (int i = 0; i < n; i++) ids[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
    if (!playground_new(2, 64, 32, 16, atoi(argv[2]), 1337, 1e-3)) {
        fprintf(stderr, "playground: %s\n", playground_message());
        return 1;
    }
    playground_mask(0, strcmp(argv[3], "none") == 0 ? -1 : 0);
    for (int step = 0; step < atoi(argv[4]); step++) playground_step();
    printf("%016llx\n", (unsigned long long)playground_hash());
    return 0;
}
