/* Protocol 1 of `maskgrad audit` in C, with only the standard library: each position predicts the average of the
 * tokens up to its own. Build it with `cc average.c -o average`, then `maskgrad audit -- ./average`; `./average broken`
 * averages over the whole sequence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 12, CONTEXT = 16, MOST_ROWS = 16 };

/* Requests come on one line without spaces: "ids":[[1,2],[3,4]]. Returns how many rows there are. */
static int read_rows(const char *request, int ids[MOST_ROWS][CONTEXT], int *length) {
    const char *at = strstr(request, "\"ids\":[[");
    int rows = 0;
    if (!at) return 0;
    for (at += strlen("\"ids\":["); *at == '['; rows++) {
        *length = 0;
        do {
            ids[rows][(*length)++] = (int)strtol(at + 1, (char **)&at, 10);
        } while (*at == ',' && *length < CONTEXT);
        at += strspn(at, "],");
    }
    return rows;
}

static void write_row(const int *ids, int length, int whole) {
    for (int t = 0; t < length; t++) {
        double logit[VOCAB] = {0};
        int end = whole ? length : t + 1;
        for (int j = 0; j < end; j++) logit[ids[j]] += 1.0 / end;
        for (int k = 0; k < VOCAB; k++) printf("%.9g%c", logit[k], k == VOCAB - 1 ? '\n' : ' ');
    }
}

int main(int argc, char **argv) {
    static char request[1 << 16];
    int ids[MOST_ROWS][CONTEXT], length = 0, whole = argc > 1 && strcmp(argv[1], "broken") == 0;
    printf("{\"maskgrad-audit\":1,\"vocab\":%d,\"context\":%d,\"rows\":%d,\"can\":[\"logits\"]}\n", VOCAB, CONTEXT,
           MOST_ROWS);
    fflush(stdout);
    while (fgets(request, sizeof request, stdin) && !strstr(request, "\"call\":\"end\"")) {
        int rows = read_rows(request, ids, &length);
        printf("{\"shape\":[%d,%d,%d],\"text\":true}\n", rows, length, VOCAB);
        for (int r = 0; r < rows; r++) write_row(ids[r], length, whole);
        fflush(stdout);
    }
    return argc < 0;
}
