#include "gpt2_import.h"

#include "hash.h"

mg_status mg_gpt_fingerprint(mg_gpt *gpt, mg_fingerprint *f, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    ptrdiff_t V = config->vocab_size;
    *f = (mg_fingerprint){.n_ids = config->block_size < MG_FINGERPRINT_IDS ? config->block_size : MG_FINGERPRINT_IDS,
                          .n_logits = V < MG_FINGERPRINT_LOGITS ? (int)V : MG_FINGERPRINT_LOGITS};
    for (int i = 0; i < f->n_ids; i++) f->ids[i] = (int)((1 + i * (ptrdiff_t)7919) % V);
    mg_tape *tape;
    mg_tape_new(&tape, error);
    if (!tape) return MG_ERR_MEMORY;
    mg_tape_record(tape, false);
    const mg_tensor *logits = mg_gpt_forward(gpt, tape, f->ids, 1, f->n_ids, NULL);
    f->hash = mg_fnv1a(MG_FNV_START, logits->data, (size_t)mg_size(logits) * sizeof *logits->data);
    for (int i = 0; i < f->n_logits; i++) f->logits[i] = (double)logits->data[(f->n_ids - 1) * V + i];
    mg_tape_free(tape);
    return MG_OK;
}
