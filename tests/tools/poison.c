/* poison CHECKPOINT VALUE OUT: a copy of a checkpoint in which the last number of the last parameter is VALUE, say nan.
 */
#include "checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

static void check(mg_status status, const mg_error *error) {
    if (status == MG_OK) return;
    fprintf(stderr, "poison: %s\n", error->message);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    mg_checkpoint checkpoint;
    mg_error error;
    check(mg_checkpoint_load(&checkpoint, argv[1], true, &error), &error);
    mg_params *params = mg_gpt_params(checkpoint.gpt);
    const mg_tensor *last = &params->param[params->n - 1].tensor;
    last->data[mg_size(last) - 1] = (mg_real)strtod(argv[2], NULL);
    check(mg_checkpoint_save(argv[3], &checkpoint, &error), &error);
    mg_checkpoint_free(&checkpoint);
    return 0;
}
