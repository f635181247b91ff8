/* A GPT as mg_causality_check sees it. What enters the first block at position j is wte[ids[j]] + wpe[j] + shift[j],
 * and nothing else reads row j of the shift: changing that row changes the input only at j. */
#include "causality.h"

#include <math.h>
#include <string.h>

typedef struct subject {
    mg_gpt *gpt;
    mg_tape *tape;
    int *ids;
    ptrdiff_t T;
    mg_real *shift;    /* (T,C): zeros but for the row that is being changed */
    mg_tensor **block; /* n_layer */
    mg_tensor *logits, *embedding;
    bool *begins; /* T: the first token of a document */
} subject;

static void run(subject *s) {
    ptrdiff_t C = mg_gpt_get_config(s->gpt)->n_embd;
    mg_gpt_capture capture = {.block = s->block};
    mg_tape_reset(s->tape);
    mg_tensor *shift = mg_leaf(s->tape, 2, (ptrdiff_t[]){s->T, C});
    memcpy(shift->data, s->shift, (size_t)mg_size(shift) * sizeof *shift->data);
    s->logits = mg_gpt_forward(s->gpt, s->tape, s->ids, 1, s->T, &(mg_gpt_pass){.capture = &capture, .shift = shift});
    s->embedding = capture.embedding;
}

static void run_with_another_token(subject *s, ptrdiff_t position) {
    int kept = s->ids[position];
    s->ids[position] = (kept + 1) % mg_gpt_get_config(s->gpt)->vocab_size;
    run(s);
    s->ids[position] = kept;
}

static void run_with_another_embedding(subject *s, ptrdiff_t position, bool poison) {
    ptrdiff_t C = mg_gpt_get_config(s->gpt)->n_embd;
    mg_real *row = s->shift + position * C;
    mg_rng rng = {0, MG_STREAM_LAB, (uint32_t)position};
    for (ptrdiff_t k = 0; k < C; k++) row[k] = poison ? (mg_real)NAN : (mg_real)mg_rng_normal(rng, (uint64_t)k);
    run(s);
    memset(row, 0, (size_t)C * sizeof *row);
}

static void forward(void *user, ptrdiff_t position, mg_change change, mg_real *const *stage) {
    subject *s = user;
    int n_layer = mg_gpt_get_config(s->gpt)->n_layer;
    mg_tape_record(s->tape, false);
    if (change == MG_CHANGE_NOTHING) run(s);
    if (change == MG_CHANGE_TOKEN) run_with_another_token(s, position);
    if (change == MG_CHANGE_EMBEDDING || change == MG_CHANGE_POISON)
        run_with_another_embedding(s, position, change == MG_CHANGE_POISON);
    for (int layer = 0; layer < n_layer; layer++)
        memcpy(stage[layer], s->block[layer]->data, (size_t)mg_size(s->block[layer]) * sizeof(mg_real));
    memcpy(stage[n_layer], s->logits->data, (size_t)mg_size(s->logits) * sizeof(mg_real));
}

/* With random weights no sum over the row cancels by design, as that over a softmax's outputs would. */
static mg_tensor *projection(const subject *s, ptrdiff_t row) {
    mg_tensor *logits = mg_slice(s->tape, s->logits, 1, row, row + 1);
    mg_tensor *weights = mg_constant(s->tape, logits->ndim, logits->dim);
    mg_rng rng = {1, MG_STREAM_LAB, (uint32_t)row};
    for (ptrdiff_t k = 0; k < mg_size(weights); k++) weights->data[k] = (mg_real)mg_rng_normal(rng, (uint64_t)k);
    return mg_sum(s->tape, mg_mul(s->tape, logits, weights), MG_ALL_AXES);
}

static double norm(const mg_real *x, ptrdiff_t n) {
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return sqrt(sum);
}

static void gradient(void *user, ptrdiff_t row, double *to) {
    subject *s = user;
    ptrdiff_t C = mg_gpt_get_config(s->gpt)->n_embd;
    mg_tape_record(s->tape, true);
    run(s);
    mg_backward(s->tape, projection(s, row));
    for (ptrdiff_t j = 0; j < s->T; j++) to[j] = norm(s->embedding->grad + j * C, C);
}

/* During the check only the shift requires a gradient, so that the gradients accumulated in the parameters stay as they
 * are and a model made for inference can be checked too. */
static void swap_required(mg_params *params, bool *required) {
    for (int i = 0; i < params->n; i++) {
        bool was = params->param[i].tensor.requires_grad;
        params->param[i].tensor.requires_grad = required[i];
        required[i] = was;
    }
}

static mg_status check(mg_causality *result, subject *s, mg_error *error) {
    mg_params *params = mg_gpt_params(s->gpt);
    const mg_gpt_config *config = mg_gpt_get_config(s->gpt);
    int n_stages = config->n_layer + 1;
    ptrdiff_t *width = mg_alloc((size_t)n_stages, sizeof *width, "the causality check", error);
    bool *required = mg_alloc_zero((size_t)params->n, sizeof *required, "the causality check", error);
    mg_status status = MG_ERR_MEMORY;
    if (width && required) {
        for (int layer = 0; layer < config->n_layer; layer++) width[layer] = config->n_embd;
        width[config->n_layer] = config->vocab_size;
        swap_required(params, required);
        mg_causality_model model = {s, s->T, n_stages, width, forward, gradient, true, s->begins};
        status = mg_causality_check(result, &model, error);
        swap_required(params, required);
    }
    mg_free(width);
    mg_free(required);
    return status;
}

static void mark_documents(subject *s) {
    const mg_gpt_config *config = mg_gpt_get_config(s->gpt);
    for (ptrdiff_t t = 0; t < s->T; t++)
        s->begins[t] = t == 0 || (config->documents && s->ids[t - 1] == config->document_end);
}

mg_status mg_causality_of_gpt(mg_causality *result, mg_gpt *gpt, const int *ids, ptrdiff_t T, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    MG_CHECK(T >= 1 && T <= config->block_size, "causality: %td tokens do not fit the context of %d", T,
             config->block_size);
    for (ptrdiff_t t = 0; t < T; t++)
        MG_CHECK(ids[t] >= 0 && ids[t] < config->vocab_size, "causality: id %d at position %td is not below %d", ids[t],
                 t, config->vocab_size);
    static const char what[] = "the causality check";
    subject s = {.gpt = gpt, .T = T};
    *result = (mg_causality){0};
    mg_tape_new(&s.tape, error);
    s.ids = mg_alloc((size_t)T, sizeof *s.ids, what, error);
    s.shift = mg_alloc_zero((size_t)T * (size_t)config->n_embd, sizeof *s.shift, what, error);
    s.block = mg_alloc((size_t)config->n_layer, sizeof *s.block, what, error);
    s.begins = mg_alloc((size_t)T, sizeof *s.begins, what, error);
    mg_status status = MG_ERR_MEMORY;
    if (s.tape && s.ids && s.shift && s.block && s.begins) {
        memcpy(s.ids, ids, (size_t)T * sizeof *ids);
        mark_documents(&s);
        status = check(result, &s, error);
    }
    mg_tape_free(s.tape);
    mg_free(s.ids);
    mg_free(s.shift);
    mg_free(s.block);
    mg_free(s.begins);
    return status;
}

/* The last position that one of a layer's heads sees from here. */
static ptrdiff_t furthest(const mg_gpt_config *config, int layer, ptrdiff_t position, ptrdiff_t T) {
    ptrdiff_t end = 0;
    for (int head = 0; head < config->n_head; head++) {
        mg_interval keys = mg_visible(mg_gpt_mask(config, layer, head), position, T);
        if (keys.end > end) end = keys.end;
    }
    return end - 1;
}

ptrdiff_t mg_causality_reach(const mg_gpt_config *config, ptrdiff_t T) {
    ptrdiff_t reach = 0;
    for (ptrdiff_t i = 0; i < T; i++) {
        ptrdiff_t position = i;
        for (int layer = config->n_layer - 1; layer >= 0; layer--) position = furthest(config, layer, position, T);
        if (position - i > reach) reach = position - i;
    }
    return reach;
}
