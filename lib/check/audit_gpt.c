/* Our GPT as an audit sees it: through the same callbacks as any other model. */
#include "audit.h"
#include "kv_cache.h"
#include "operation.h"

#include <string.h>

struct mg_audit_gpt {
    mg_gpt *gpt;
    mg_tape *tape;
    mg_kv_cache *cache; /* NULL for a model that looks ahead */
};

static void copy_columns(const mg_tensor *logits, int n_columns, const int *columns, double *to) {
    ptrdiff_t V = logits->dim[2], rows = logits->dim[0] * logits->dim[1];
    for (ptrdiff_t r = 0; r < rows; r++)
        for (int k = 0; k < n_columns; k++)
            to[r * n_columns + k] = (double)logits->data[r * V + (columns ? columns[k] : k)];
}

/* The same ids with each segment as a document: its last token is the one that ends a document, and no other is. */
static const int *pack(mg_audit_gpt *s, const mg_audit_batch *batch) {
    const mg_gpt_config *config = mg_gpt_get_config(s->gpt);
    int n = batch->rows * batch->length, end = config->document_end, other = (end + 1) % config->vocab_size;
    int *ids = mg_tape_alloc(s->tape, (size_t)n, sizeof *ids, "packed documents");
    for (int i = 0; i < n; i++) {
        bool is_last = (i + 1) % batch->length == 0 || batch->segments[i] != batch->segments[i + 1];
        ids[i] = is_last ? end : batch->ids[i] == end ? other : batch->ids[i];
    }
    return ids;
}

static mg_status logits(void *user, const mg_audit_batch *batch, double *to, mg_error *error) {
    (void)error;
    mg_audit_gpt *s = user;
    mg_tape_reset(s->tape);
    const int *ids = batch->segments ? pack(s, batch) : batch->ids;
    mg_gpt_pass pass = {.training = batch->train, .dropout_seed = batch->seed};
    copy_columns(mg_gpt_forward(s->gpt, s->tape, ids, batch->rows, batch->length, &pass), batch->n_columns,
                 batch->columns, to);
    return MG_OK;
}

static mg_status step(void *user, const int *ids, int n, bool reset, int n_columns, const int *columns, double *to,
                      mg_error *error) {
    mg_audit_gpt *s = user;
    if (reset) mg_kv_cache_clear(s->cache);
    int context = mg_gpt_get_config(s->gpt)->block_size;
    if (s->cache->length + n > context) return mg_error_set(error, MG_ERR_INPUT, "the cache serves %d tokens", context);
    mg_tape_reset(s->tape);
    mg_gpt_pass pass = {.cache = &s->cache};
    copy_columns(mg_gpt_forward(s->gpt, s->tape, ids, 1, n, &pass), n_columns, columns, to);
    return MG_OK;
}

static mg_status loss(void *user, const int *ids, int length, double *to, mg_error *error) {
    (void)error;
    mg_audit_gpt *s = user;
    mg_tape_reset(s->tape);
    *to = (double)mg_gpt_loss(s->gpt, s->tape, ids, ids + 1, 1, length - 1, NULL, NULL)->data[0];
    return MG_OK;
}

mg_status mg_audit_gpt_new(mg_audit_gpt **subject, mg_audit_model *model, mg_gpt *gpt, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    mg_audit_gpt *s = *subject = mg_alloc_zero(1, sizeof *s, "an audit", error);
    if (!s) return MG_ERR_MEMORY;
    s->gpt = gpt;
    mg_tape_new(&s->tape, error);
    mg_status status = s->tape ? MG_OK : MG_ERR_MEMORY;
    if (!status && mg_gpt_is_causal(config)) status = mg_kv_cache_new(&s->cache, mg_gpt_get_config(gpt), error);
    if (status) {
        mg_audit_gpt_free(s);
        *subject = NULL;
        return status;
    }
    mg_tape_record(s->tape, false);
    *model = (mg_audit_model){.user = s,
                              .vocab = config->vocab_size,
                              .context = config->block_size,
                              .dtype = sizeof(mg_real) == sizeof(double) ? MG_AUDIT_F64 : MG_AUDIT_F32,
                              .logits = logits,
                              .can_train = config->dropout > 0,
                              .can_segment = config->documents,
                              .step = s->cache ? step : NULL,
                              .loss = loss};
    return MG_OK;
}

void mg_audit_gpt_free(mg_audit_gpt *subject) {
    if (!subject) return;
    mg_tape_free(subject->tape);
    mg_kv_cache_free(subject->cache);
    mg_free(subject);
}
