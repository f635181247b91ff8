#include "speculator.h"

#include "prefill.h"

#include <string.h>

/* A model that reads the text; its cache holds a beginning of the window's part that it reads. */
typedef struct reader {
    mg_gpt *gpt;
    mg_kv_cache *cache;
    ptrdiff_t from; /* of the window: 0, except for a draft model with a shorter context */
} reader;

struct mg_speculator {
    reader target, draft;
    mg_tape *tape;
    int n_ids;
    ptrdiff_t n_draft, block_size;
    int *prompt;
    ptrdiff_t prompt_length;
    int *window; /* block_size + 1: the text, and after its length what was drafted */
    ptrdiff_t length;
    bool slid; /* the window no longer starts with the prompt */
    mg_sampler sampler;
    double *p, *q; /* (n_draft + 1, n_ids) of the target, (n_draft, n_ids) of the draft */
    int *order;
    mg_draft_rule *rule;
    void *rule_user;
    mg_speculation counts;
};

/* ---- The rule ---- */

/* A draw from max(0, p − q) / Σ max(0, p − q). Where rounding leaves nothing of it, p and q are the same: from p. */
static int draw_residual(const double *p, const double *q, int n, double uniform) {
    double total = 0, sum = 0;
    for (int i = 0; i < n; i++) total += p[i] > q[i] ? p[i] - q[i] : 0;
    bool is_empty = total <= 0;
    if (is_empty) total = 1;
    int last = 0; /* the sum may round to just under the total */
    for (int i = 0; i < n; i++) {
        double part = is_empty ? p[i] : p[i] - q[i];
        if (part <= 0) continue;
        sum += part;
        last = i;
        if (uniform * total < sum) return i;
    }
    return last;
}

bool mg_draft_judge(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user) {
    (void)user;
    if (mg_rng_uniform(rng, index) * q[*id] < p[*id]) return true;
    *id = draw_residual(p, q, n, mg_rng_uniform(rng, index + 1));
    return false;
}

/* ---- Set up ---- */

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static mg_status check_masks(const mg_gpt *target, const mg_gpt *draft, mg_error *error) {
    bool target_is_causal = mg_gpt_is_causal(mg_gpt_get_config(target));
    if (target_is_causal && mg_gpt_is_causal(mg_gpt_get_config(draft))) return MG_OK;
    if (target_is_causal)
        return mg_error_set(error, MG_ERR_STATE,
                            "the draft model looks ahead, so it has no KV cache, and drafting would cost more than it "
                            "saves");
    return mg_error_set(error, MG_ERR_STATE,
                        "this model looks ahead, so what it predicts after a token depends on the drafted tokens that "
                        "follow: it cannot judge them in one pass");
}

static mg_status allocate(mg_speculator *s, mg_error *error) {
    size_t T = (size_t)s->block_size, n = (size_t)s->n_ids, rows = (size_t)s->n_draft;
    mg_tape_new(&s->tape, error);
    s->prompt = mg_alloc(T, sizeof(int), "a prompt", error);
    s->window = mg_alloc(T + 1, sizeof(int), "a window", error);
    s->p = mg_alloc((rows + 1) * n, sizeof(double), "probabilities", error);
    s->q = mg_alloc(rows * n, sizeof(double), "probabilities", error);
    s->order = mg_alloc(n, sizeof(int), "the order of tokens", error);
    if (!s->tape || !s->prompt || !s->window || !s->p || !s->q || !s->order) return MG_ERR_MEMORY;
    mg_tape_record(s->tape, false);
    mg_status status = mg_kv_cache_new(&s->target.cache, mg_gpt_get_config(s->target.gpt), error);
    return status ? status : mg_kv_cache_new(&s->draft.cache, mg_gpt_get_config(s->draft.gpt), error);
}

mg_status mg_speculator_new(mg_speculator **speculator, mg_gpt *target, mg_gpt *draft, int n_ids, int n_draft,
                            mg_error *error) {
    *speculator = NULL;
    MG_CHECK(n_ids >= 1, "speculator: %d ids to draw from; it must have at least 1", n_ids);
    MG_CHECK(n_draft >= 1, "speculator: %d tokens to draft; it must be at least 1", n_draft);
    mg_status status = check_masks(target, draft, error);
    if (status) return status;
    mg_speculator *s = mg_alloc_zero(1, sizeof *s, "a speculator", error);
    if (!s) return MG_ERR_MEMORY;
    s->target.gpt = target;
    s->draft.gpt = draft;
    s->n_ids = smaller(n_ids, smaller(mg_gpt_get_config(target)->vocab_size, mg_gpt_get_config(draft)->vocab_size));
    s->block_size = mg_gpt_get_config(target)->block_size;
    s->n_draft = n_draft < s->block_size ? n_draft : s->block_size;
    s->rule = mg_draft_judge;
    status = allocate(s, error);
    if (status)
        mg_speculator_free(s);
    else
        *speculator = s;
    return status;
}

void mg_speculator_free(mg_speculator *s) {
    if (!s) return;
    if (s->tape) mg_tape_free(s->tape);
    mg_kv_cache_free(s->target.cache);
    mg_kv_cache_free(s->draft.cache);
    mg_free(s->prompt);
    mg_free(s->window);
    mg_free(s->p);
    mg_free(s->q);
    mg_free(s->order);
    mg_free(s);
}

void mg_speculator_set_rule(mg_speculator *s, mg_draft_rule *rule, void *user) {
    s->rule = rule;
    s->rule_user = user;
}

mg_speculation mg_speculator_counts(const mg_speculator *s) {
    return s->counts;
}

/* ---- The window and the caches ---- */

/* Keep only the first `length` tokens of the window. Causal: what came after them never changed their keys. */
static void cut_back(reader *r, ptrdiff_t length) {
    mg_kv_cache_cut(r->cache, length > r->from ? length - r->from : 0);
}

static void forget(reader *r, ptrdiff_t from) {
    r->from = from;
    mg_kv_cache_clear(r->cache);
}

/* Back to the prompt, of which the last token is read again, for what follows it. */
static void rewind_to_prompt(mg_speculator *s) {
    if (s->slid) forget(&s->target, 0);
    if (s->slid || s->draft.from > 0) forget(&s->draft, 0);
    memcpy(s->window, s->prompt, (size_t)s->prompt_length * sizeof *s->window);
    s->length = s->prompt_length;
    s->slid = false;
    cut_back(&s->target, s->length - 1);
    cut_back(&s->draft, s->length - 1);
}

void mg_speculator_prompt(mg_speculator *s, const int *ids, ptrdiff_t n) {
    MG_CHECK(n >= 1, "speculator: a prompt must have at least one token");
    int known = smaller(mg_gpt_get_config(s->target.gpt)->vocab_size, mg_gpt_get_config(s->draft.gpt)->vocab_size);
    for (ptrdiff_t i = 0; i < n; i++)
        MG_CHECK(ids[i] >= 0 && ids[i] < known, "speculator: id %d is not below %d, the ids that both models know",
                 ids[i], known);
    s->prompt_length = n < s->block_size ? n : s->block_size;
    memcpy(s->prompt, ids + (n - s->prompt_length), (size_t)s->prompt_length * sizeof *ids);
    s->slid = true;
    rewind_to_prompt(s);
}

/* The n tokens after the text's last one now belong to it; only the last of them is new to the target. */
static void advance(mg_speculator *s, ptrdiff_t n) {
    s->length += n;
    cut_back(&s->target, s->length - 1);
    cut_back(&s->draft, s->length - 1);
    if (s->length <= s->block_size) return;
    memmove(s->window, s->window + 1, (size_t)s->block_size * sizeof *s->window);
    s->length = s->block_size;
    s->slid = true;
    forget(&s->target, 0); /* the positions of all tokens change */
    forget(&s->draft, 0);
}

/* ---- A round: draft, judge ---- */

/* p (n, n_ids): the probabilities of the tokens that follow each of the last n of the window's first `end` tokens. */
static mg_status predict(mg_speculator *s, reader *r, ptrdiff_t end, ptrdiff_t n, double *p, mg_error *error) {
    const int *ids = s->window + r->from + r->cache->length;
    ptrdiff_t left = end - r->from - r->cache->length;
    ptrdiff_t done = mg_prefill(r->gpt, s->tape, r->cache, ids, left - (n - 1));
    mg_gpt_pass pass = {.cache = &r->cache, .last_only = n == 1};
    mg_tensor *logits = mg_gpt_forward(r->gpt, s->tape, ids + done, 1, left - done, &pass);
    const mg_real *row = logits->data + mg_size(logits) - n * mg_gpt_get_config(r->gpt)->vocab_size;
    mg_status status = MG_OK;
    for (ptrdiff_t i = 0; i < n && !status; i++, row += mg_gpt_get_config(r->gpt)->vocab_size) {
        status = mg_gpt_check_logits(r->gpt, row, s->n_ids, error);
        if (!status) mg_sampler_probabilities(&s->sampler, row, s->n_ids, p + i * s->n_ids, s->order);
    }
    mg_tape_reset(s->tape);
    return status;
}

/* How many tokens to draft: what fits into the window. A draft model whose own context is full keeps half of it. */
static ptrdiff_t draft_size(mg_speculator *s) {
    ptrdiff_t n = s->n_draft, room = s->block_size - s->length;
    ptrdiff_t context = mg_gpt_get_config(s->draft.gpt)->block_size, half = context > 1 ? context / 2 : 1;
    if (n > room) n = room;
    if (n > half) n = half;
    if (s->length - s->draft.from + n - 1 > context) forget(&s->draft, s->length - half);
    return n;
}

/* Three draws per token of the text: the drafted token, whether it stays, and what comes in its place. A token that is
 * drafted again after a rejection before it uses the first of them again, which was not used. */
enum { DRAFT, RULE, DRAWS = 3 };

static mg_status draft(mg_speculator *s, ptrdiff_t n, mg_rng rng, ptrdiff_t first, mg_error *error) {
    for (ptrdiff_t i = 0; i < n; i++) {
        double *q = s->q + i * s->n_ids;
        mg_status status = predict(s, &s->draft, s->length + i, 1, q, error);
        if (status) return status;
        s->window[s->length + i] = mg_sampler_draw(q, s->n_ids, rng, (uint64_t)(DRAWS * (first + i) + DRAFT));
    }
    s->counts.drafted += n;
    return MG_OK;
}

/* One pass of the target judges the n drafted tokens. *written is how many tokens the text grows by: those that stay,
 * and one more: in place of the first that does not, or after them all. */
static mg_status judge(mg_speculator *s, ptrdiff_t n, mg_rng rng, ptrdiff_t first, ptrdiff_t *written,
                       mg_error *error) {
    mg_status status = predict(s, &s->target, s->length + n, n + 1, s->p, error);
    if (status) return status;
    int *drafted = s->window + s->length;
    ptrdiff_t i = 0;
    bool stays = true;
    for (; i < n && stays; i += stays) {
        stays = s->rule(s->p + i * s->n_ids, s->q + i * s->n_ids, s->n_ids, &drafted[i], rng,
                        (uint64_t)(DRAWS * (first + i) + RULE), s->rule_user);
        s->counts.judged++;
    }
    if (stays) drafted[n] = mg_sampler_draw(s->p + n * s->n_ids, s->n_ids, rng, (uint64_t)(DRAWS * (first + n) + RULE));
    s->counts.passes++;
    s->counts.accepted += i;
    *written = i + 1;
    return MG_OK;
}

/* The first n tokens after the text, until on_token wants no more. Returns how many it was given. */
static ptrdiff_t hand_on(const mg_speculator *s, ptrdiff_t n, mg_token_fn *on_token, void *user, bool *goes_on) {
    ptrdiff_t i = 0;
    while (i < n && *goes_on) *goes_on = on_token(s->window[s->length + i++], user);
    return i;
}

/* A text that ends among the accepted tokens uses no draft after its end; else the pass used all of them. */
static void count_handed(mg_speculation *counts, ptrdiff_t drafted, ptrdiff_t accepted, ptrdiff_t handed) {
    bool ends_early = handed <= accepted;
    counts->written += handed;
    counts->used += ends_early ? handed : drafted;
    counts->stayed += ends_early ? handed : accepted;
}

mg_status mg_speculator_check(mg_speculator *s, mg_error *error) {
    MG_CHECK(s->prompt_length > 0, "speculator: there is no prompt yet");
    s->sampler = (mg_sampler){.temperature = 1, .top_p = 1};
    rewind_to_prompt(s);
    mg_status status = predict(s, &s->target, s->length, 1, s->p, error);
    if (status || draft_size(s) == 0) return status;
    mg_error reason;
    status = predict(s, &s->draft, s->length, 1, s->q, &reason);
    return status ? mg_error_set(error, status, "the draft model cannot be used: %s", reason.message) : MG_OK;
}

mg_status mg_speculate(mg_speculator *s, const mg_sampler *sampler, uint64_t seed, uint32_t sample, ptrdiff_t n,
                       mg_token_fn *on_token, void *user, mg_error *error) {
    MG_CHECK(s->prompt_length > 0, "speculator: there is no prompt yet");
    mg_rng rng = {seed, MG_STREAM_SAMPLE, sample};
    s->sampler = *sampler;
    rewind_to_prompt(s);
    bool goes_on = true;
    for (ptrdiff_t done = 0; done < n && goes_on;) {
        ptrdiff_t drafted = draft_size(s), written = 0;
        mg_status status = draft(s, drafted, rng, done, error);
        if (!status) status = judge(s, drafted, rng, done, &written, error);
        if (status) return status;
        ptrdiff_t room = n - done, handed = hand_on(s, written < room ? written : room, on_token, user, &goes_on);
        count_handed(&s->counts, drafted, written - 1, handed);
        done += handed;
        if (goes_on) advance(s, written);
    }
    return MG_OK;
}

static bool collect(int id, void *user) {
    int **next = user;
    *(*next)++ = id;
    return true;
}

mg_status mg_speculate_ids(mg_speculator *s, const mg_sampler *sampler, uint64_t seed, uint32_t sample, ptrdiff_t n,
                           int *ids, mg_error *error) {
    return mg_speculate(s, sampler, seed, sample, n, collect, &ids, error);
}
