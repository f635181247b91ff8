#include "gpt_config.h"

#include <math.h>

void mg_gpt_config_fill(mg_gpt_config *c) {
    if (c->n_layer == 0) c->n_layer = 2;
    if (c->n_head == 0) c->n_head = 4;
    if (c->n_embd == 0) c->n_embd = 64;
    if (c->block_size == 0) c->block_size = 32;
    if (c->init_std == 0) c->init_std = 0.02;
    if (c->eps == 0) c->eps = 1e-5;
    if (c->leak_lookahead == 0) {
        c->leak_layer = -1;
        c->leak_head = 0;
    }
}

static mg_status check_range(const char *name, int value, int most, mg_error *error) {
    if (value >= 1 && value <= most) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is %d; it must be between 1 and %d", name, value, most);
}

static const char *const mask_names[] = {[MG_MASK_LOOKAHEAD] = "lookahead",
                                         [MG_MASK_WINDOW] = "the window of the mask",
                                         [MG_MASK_PREFIX] = "the prefix of the mask",
                                         [MG_MASK_BLOCK] = "the block of the mask"};

static mg_status check_std(const char *name, double value, mg_error *error) {
    if (value >= 0 && value < INFINITY) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is %g; it must be 0 or a positive number", name, value);
}

mg_status mg_mask_check(mg_mask mask, mg_error *error) {
    if (mask.kind > MG_MASK_BLOCK)
        return mg_error_set(error, MG_ERR_INPUT, "the mask is of kind %d; there are 0 to %d", (int)mask.kind,
                            (int)MG_MASK_BLOCK);
    if (mg_mask_is_valid(mask)) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is %d; it must be %d or more", mask_names[mask.kind], mask.n,
                        mask.kind == MG_MASK_WINDOW || mask.kind == MG_MASK_BLOCK);
}

mg_status mg_gpt_config_check(const mg_gpt_config *c, mg_error *error) {
    mg_status status = check_range("n_layer", c->n_layer, 1000, error);
    if (!status) status = check_range("n_head", c->n_head, 1000, error);
    if (!status) status = check_range("n_embd", c->n_embd, 1 << 16, error);
    if (!status) status = check_range("block_size", c->block_size, 1 << 20, error);
    if (!status) status = check_range("vocab_size", c->vocab_size, 1 << 24, error);
    if (status) return status;
    if (c->n_embd % c->n_head != 0)
        return mg_error_set(
            error, MG_ERR_INPUT,
            "n_embd is %d and n_head is %d; each head takes an equal share, so n_embd must be a multiple "
            "of n_head",
            c->n_embd, c->n_head);
    int64_t C = c->n_embd, rows = c->vocab_size + (c->no_positions ? 0 : (int64_t)c->block_size);
    int64_t count = rows * C + c->n_layer * (12 * C * C + 13 * C);
    if (count > (int64_t)1 << 33)
        return mg_error_set(error, MG_ERR_INPUT,
                            "a model of these sizes has %lld parameters; at most %lld are possible", (long long)count,
                            1LL << 33);
    status = mg_mask_check(c->mask, error);
    if (status) return status;
    if (c->leak_layer >= 0 &&
        (c->leak_layer >= c->n_layer || c->leak_head < 0 || c->leak_head >= c->n_head || c->leak_lookahead < 0))
        return mg_error_set(error, MG_ERR_INPUT,
                            "the leak is in layer %d, head %d, %d ahead; layers are 0 to %d, heads 0 to %d",
                            c->leak_layer, c->leak_head, c->leak_lookahead, c->n_layer - 1, c->n_head - 1);
    if (c->documents && (c->document_end < 0 || c->document_end >= c->vocab_size))
        return mg_error_set(error, MG_ERR_INPUT, "document_end is %d; it must be a token below %d", c->document_end,
                            c->vocab_size);
    if (!(c->dropout >= 0 && (float)c->dropout < 1))
        return mg_error_set(error, MG_ERR_INPUT, "dropout is %.15g; it must be at least 0 and below 1, as a float too",
                            c->dropout);
    status = check_std("init_std", c->init_std, error);
    if (!status) status = check_std("attn_init_std", c->attn_init_std, error);
    if (status) return status;
    if (!(c->eps > 0 && c->eps < 1))
        return mg_error_set(error, MG_ERR_INPUT, "eps is %g; it must be a small positive number, 1e-5 in GPT-2",
                            c->eps);
    return MG_OK;
}

ptrdiff_t mg_gpt_ended(const mg_gpt_config *c, const int *ids, ptrdiff_t n) {
    if (!c->documents || (c->positions_run_on && !c->no_positions)) return 0;
    while (n > 0 && ids[n - 1] != c->document_end) n--;
    return n;
}

mg_mask mg_gpt_mask(const mg_gpt_config *c, int layer, int head) {
    bool leaks = c->leak_lookahead != 0 && layer == c->leak_layer && head == c->leak_head;
    return leaks ? mg_lookahead(c->leak_lookahead) : c->mask;
}

bool mg_gpt_is_causal(const mg_gpt_config *c) {
    return !mg_looks_ahead(c->mask) && (c->leak_layer < 0 || c->leak_lookahead == 0);
}
