/* Each kind of fault gets the right first verdict and the right pair, and what is honest is acquitted. */
#include "toy.h"

static bool all(const toy *m, int i, int j) {
    (void)m, (void)i, (void)j;
    return true;
}

static bool inverted(const toy *m, int i, int j) {
    (void)m;
    return j >= i;
}

static bool late(const toy *m, int i, int j) {
    return j <= i || i >= m->from;
}

static bool late_and_near(const toy *m, int i, int j) {
    return j <= i || (i >= m->from && j <= i + m->width);
}

static bool periodic(const toy *m, int i, int j) {
    return j <= i || (i >= m->from && j <= i + 1 + m->width && (i + 1) % m->period == 0);
}

static bool blocks(const toy *m, int i, int j) {
    return j <= i || (i >= m->from && i / m->period == j / m->period);
}

static bool last_key(const toy *m, int i, int j) {
    return j <= i || j == (m->from ? m->from : m->T - 1);
}

/* As of a model that shifts its input itself: the prediction at position i is of token i. */
static bool before(const toy *m, int i, int j) {
    (void)m;
    return j < i;
}

static bool window(const toy *m, int i, int j) {
    return j <= i && j > i - m->width;
}

/* clang-format off */
static const toy faults[] = {
    {.name = "noise", .noise = 0.01, .first = MG_AUDIT_REPEAT, .says = "differ each time: 100%"},
    {.name = "noise of many rows", .wide_noise = 1e-9, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "not a function"},
    {.name = "tiny noise", .noise = 1e-12, .first = MG_AUDIT_REPEAT},
    {.name = "noise over a leak", .noise = 1e-9, .sees = all, .first = MG_AUDIT_REPEAT},
    {.name = "first call", .first_call_differs = true, .first = MG_AUDIT_REPEAT, .says = "only the first call"},
    {.name = "memory", .remembers = true, .first = MG_AUDIT_REPEAT, .says = "until another call"},
    {.name = "shared rows", .rows_share = true, .first = MG_AUDIT_BATCH, .says = "position 0 of row 0 changes"},
    {.name = "row order", .order_counts = true, .first = MG_AUDIT_BATCH, .says = "in another place"},
    {.name = "no mask", .sees = all, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "every prediction sees every later token"},
    {.name = "no mask, T 2", .sees = all, .T = 2, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "no mask, one row", .sees = all, .most_rows = 1, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "no mask, far", .sees = all, .T = 150, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "inverted", .sees = inverted, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "diagonal 1", .sees = next_too, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "every prediction sees 1 token ahead"},
    {.name = "3 ahead", .sees = next_too, .width = 3, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "up to 3 tokens"},
    {.name = "late", .sees = late, .from = 20, .first = MG_AUDIT_MASK, .query = 20, .key = 21,
     .says = "from position 20 on"},
    {.name = "last but one", .sees = late, .from = 22, .first = MG_AUDIT_MASK, .query = 22, .key = 23},
    {.name = "late and far", .sees = late, .T = 200, .from = 100, .first = MG_AUDIT_MASK, .query = 100, .key = 101,
     .says = "Of 19900 pairs 19"},
    {.name = "from 200 on", .sees = late, .T = 256, .from = 200, .first = MG_AUDIT_MASK, .query = 200, .key = 201,
     .says = "every prediction from position 200 on sees up to 55 tokens ahead", .look = "of a fixed size"},
    {.name = "1 ahead from 77 on", .sees = late_and_near, .T = 300, .from = 77, .width = 1, .first = MG_AUDIT_MASK,
     .query = 77, .key = 78, .says = "every prediction from position 77 on sees 1 token ahead", .look = "off-by-one"},
    {.name = "9 ahead from 431 on", .sees = late_and_near, .T = 500, .from = 431, .width = 9, .first = MG_AUDIT_MASK,
     .query = 431, .key = 432, .says = "every prediction from position 431 on sees up to 9 tokens ahead"},
    {.name = "every 16th from 128 on", .sees = periodic, .period = 16, .from = 128, .T = 256, .first = MG_AUDIT_MASK,
     .query = 143, .key = 144, .says = "every 16th prediction, from position 143 on, sees 1 token ahead"},
    {.name = "every 7th from 100 on", .sees = periodic, .period = 7, .from = 100, .T = 400, .first = MG_AUDIT_MASK,
     .query = 104, .key = 105, .says = "every 7th prediction, from position 104 on, sees 1 token ahead"},
    {.name = "blocks of 16 from 96 on", .sees = blocks, .period = 16, .from = 96, .T = 200, .first = MG_AUDIT_MASK,
     .query = 96, .key = 97, .says = "inside its block of 16, from position 96 on, sees up to 15 tokens ahead"},
    {.name = "token 190", .sees = last_key, .from = 190, .T = 200, .first = MG_AUDIT_MASK, .query = 0, .key = 190,
     .says = "token 190 is seen by earlier predictions"},
    {.name = "one far pair", .sees = one_pair, .from = 130, .width = 40, .T = 200, .first = MG_AUDIT_MASK, .query = 130,
     .key = 170, .says = ": the prediction at position 130 sees up to 40 tokens ahead"},
    {.name = "from 150 on in training", .train_unmasked = true, .train_from = 150, .T = 200, .first = MG_AUDIT_MASK,
     .query = 150, .key = 151, .says = "in training mode position 150 moves with token 151"},
    {.name = "every 8th", .sees = periodic, .period = 8, .first = MG_AUDIT_MASK, .query = 7, .key = 8,
     .says = "every 8th prediction, from position 7 on"},
    {.name = "every 2nd", .sees = periodic, .period = 2, .first = MG_AUDIT_MASK, .query = 1, .key = 2,
     .says = "every 2nd prediction"},
    {.name = "every 3rd", .sees = periodic, .period = 3, .first = MG_AUDIT_MASK, .query = 2, .key = 3,
     .says = "every 3rd prediction"},
    {.name = "every 11th", .sees = periodic, .period = 11, .T = 40, .first = MG_AUDIT_MASK, .query = 10, .key = 11,
     .says = "every 11th prediction"},
    {.name = "border of 64", .sees = periodic, .period = 64, .T = 130, .first = MG_AUDIT_MASK, .query = 63, .key = 64,
     .says = "Of 8385 pairs "},
    {.name = "blocks of 8", .sees = blocks, .period = 8, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "block of 8"},
    {.name = "last key", .sees = last_key, .first = MG_AUDIT_MASK, .query = 0, .key = 23,
     .says = "token 23 is seen by 23 earlier predictions"},
    {.name = "one pair", .sees = one_pair, .from = 3, .width = 9, .first = MG_AUDIT_MASK, .query = 3, .key = 12,
     .says = "only the prediction at position 3"},
    {.name = "one pair, 64", .sees = one_pair, .from = 62, .width = 1, .T = 64, .first = MG_AUDIT_MASK, .query = 62,
     .key = 63},
    {.name = "tiny leak", .sees = all, .leak = 1e-8, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .query = 0, .key = 1, .says = "no larger than rounding"},
    {.name = "tiny leak in float64", .sees = all, .leak = 1e-8, .dtype = MG_AUDIT_F64, .first = MG_AUDIT_MASK,
     .query = 0, .key = 1, .says = "every later token"},
    {.name = "rounding in float64", .sees = all, .leak = 1e-15, .dtype = MG_AUDIT_F64, .first = MG_AUDIT_MASK,
     .verdict = MG_AUDIT_INCONCLUSIVE, .says = "no larger than rounding", .look = "Run it in float32 too"},
    {.name = "rounding between rows", .rows_share = true, .shared = 1e-9, .first = MG_AUDIT_BATCH,
     .verdict = MG_AUDIT_INCONCLUSIVE, .says = "no larger than rounding", .look = "Run it in float64"},
    {.name = "rounding in bf16", .sees = all, .leak = 1e-3, .dtype = MG_AUDIT_BF16, .first = MG_AUDIT_MASK,
     .verdict = MG_AUDIT_INCONCLUSIVE, .says = "no larger than rounding", .look = "Run it in float64"},
    {.name = "training only", .train_unmasked = true, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "in training mode"},
    {.name = "statistics over time in training", .train_centers = true, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "in training mode position 0 moves with token 1, which comes later"},
    {.name = "dropout that no seed reaches", .noise = 0.1, .dropout = true, .first = MG_AUDIT_MASK,
     .verdict = MG_AUDIT_INCONCLUSIVE, .says = "moves a bit, in 2 sequences"},
    {.name = "dropout over a leak in training", .noise = 10, .dropout = true, .train_unmasked = true,
     .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE, .says = "In training mode equal calls differ by up to"},
    {.name = "less dropout than leak in training", .noise = 1e-3, .dropout = true, .train_unmasked = true,
     .first = MG_AUDIT_MASK, .query = 0, .key = 1, .says = "in training mode"},
    {.name = "one call of seven differs in training", .rare_noise = 0.1, .dropout = true, .first = MG_AUDIT_MASK,
     .verdict = MG_AUDIT_INCONCLUSIVE, .says = "In training mode position 0 moved once", .look = "dropout that the seed"},
    {.name = "zeros in training", .train_zero = true, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "in training mode, with one row per call, no earlier token moves 23 of 23 predictions"},
    {.name = "constant", .constant = true, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "nothing flows"},
    {.name = "only itself", .only_itself = true, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE},
    {.name = "vocabulary 1", .V = 1, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE, .says = "one token"},
    {.name = "one token", .T = 1, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE, .says = "one token"},
    {.name = "length", .length_counts = true, .first = MG_AUDIT_PREFIX, .query = 0, .key = 1},
    {.name = "length, logits only", .length_counts = true, .bare = true, .first = MG_AUDIT_PREFIX, .query = 0, .key = 1},
    {.name = "pads seen", .pads_seen = true, .first = MG_AUDIT_PADDING, .says = "other ids in the 6 pads on the left"},
    {.name = "pads counted", .pads_counted = true, .first = MG_AUDIT_PADDING, .says = "real position 0 differs"},
    {.name = "padded path", .padded_unmasked = true, .first = MG_AUDIT_PADDING, .says = "differs"},
    {.name = "stale", .stale = true, .first = MG_AUDIT_CACHE, .says = "after a reset"},
    {.name = "restarts", .restarts = true, .first = MG_AUDIT_CACHE, .query = 1, .key = -1, .says = "one by one"},
    {.name = "stale after the end", .stale_after_end = true, .first = MG_AUDIT_CACHE, .says = "after the end"},
    {.name = "not shifted", .ahead = -1, .first = MG_AUDIT_SHIFT, .query = 0, .key = 0, .says = "are not shifted"},
    {.name = "shifted twice", .ahead = 2, .first = MG_AUDIT_SHIFT, .query = 0, .key = 2, .says = "shifted twice"},
    {.name = "input shifted, and the targets too", .sees = before, .ahead = 1, .first = MG_AUDIT_SHIFT, .query = 0,
     .key = 1, .says = "see the token 1 before their own, and none after it): the targets are shifted twice"},
    {.name = "input shifted, targets backwards", .sees = before, .ahead = -2, .first = MG_AUDIT_SHIFT, .query = 1,
     .key = 0, .says = "are not shifted"},
    {.name = "backwards", .ahead = -2, .first = MG_AUDIT_SHIFT, .query = 1, .key = 0, .says = "the wrong way"},
    {.name = "rolled", .rolled = true, .first = MG_AUDIT_SHIFT, .query = 23, .key = 0, .says = "rolled"},
    {.name = "far targets", .ahead = 5, .first = MG_AUDIT_SHIFT, .verdict = MG_AUDIT_INCONCLUSIVE},
    {.name = "smoothed", .smoothing = 0.1, .first = MG_AUDIT_SHIFT, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "no token from -2 to 3"},
    {.name = "documents", .documents_seen = true, .first = MG_AUDIT_SEGMENTS, .query = 8, .key = 0},
    {.name = "packed path", .segments_unmasked = true, .first = MG_AUDIT_SEGMENTS, .query = 0, .key = 1},
};

static const toy honest[] = {
    {.name = "plain"},
    {.name = "window", .sees = window, .width = 3},
    {.name = "input shifted", .sees = before, .ahead = -1},
    {.name = "window of 2", .sees = window, .width = 2},
    {.name = "vocabulary 2", .V = 2},
    {.name = "large vocabulary", .V = 300},
    {.name = "T 2", .T = 2, .V = 30, .no_cache = false},
    {.name = "T 3", .T = 3},
    {.name = "T 65", .T = 65},
    {.name = "T 200", .T = 200},
    {.name = "far window", .T = 200, .sees = window, .width = 2},
    {.name = "one row", .most_rows = 1},
    {.name = "three rows", .most_rows = 3},
    {.name = "no cache", .no_cache = true},
    {.name = "refuses the end", .refuses_end = true},
    {.name = "float32", .rounding = 1e-6},
    {.name = "bf16", .dtype = MG_AUDIT_BF16, .rounding = 4e-3},
    {.name = "float64", .dtype = MG_AUDIT_F64, .rounding = 1e-14},
    {.name = "bits", .unit = 1.4426950408889634},
    {.name = "dropout", .noise = 0.1, .dropout = true, .seeded = true},
    {.name = "rows share statistics in training", .train_rows_share = true},
    {.name = "a forbidden token", .forbidden_token = true, .bare = true},
};
/* clang-format on */

/* In the tables `ahead` is one more than 0, and the pair one more than none, only where they say so. */
static toy prepared(const toy *row) {
    toy m = *row;
    m.ahead = row->ahead == 0 ? 1 : row->ahead == -1 ? 0 : row->ahead == -2 ? -1 : row->ahead;
    if (m.verdict == MG_AUDIT_NOT_OFFERED) m.verdict = MG_AUDIT_FAIL;
    return m;
}

static void check_fault(const toy *row) {
    toy m = prepared(row);
    mg_audit audit = audit_toy(&m, NULL);
    mg_audit_probe first = mg_audit_first(&audit);
    const mg_audit_finding *f = &audit.finding[row->first];
    if (first != row->first || f->verdict != m.verdict)
        fail_msg("%s: first %s, expected %s; %s: %s", row->name,
                 first < MG_AUDIT_N_PROBES ? mg_audit_probe_name(first) : "none", mg_audit_probe_name(row->first),
                 mg_audit_verdict_name(f->verdict), f->evidence);
    if (row->key && (f->query != row->query || f->key != row->key))
        fail_msg("%s: (%d, %d), expected (%d, %d): %s", row->name, f->query, f->key, row->query, row->key, f->evidence);
    if (row->says && !strstr(f->evidence, row->says))
        fail_msg("%s: '%s' is not in: %s", row->name, row->says, f->evidence);
    if (row->look && !strstr(f->look, row->look)) fail_msg("%s: '%s' is not in: %s", row->name, row->look, f->look);
    if (f->verdict == MG_AUDIT_FAIL) assert_true(f->look[0] != 0);
    mg_audit_free(&audit);
}

static void every_fault_gets_its_verdict(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) check_fault(&faults[i]);
}

static void the_honest_are_acquitted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof honest / sizeof *honest; i++) {
        toy m = prepared(&honest[i]);
        mg_audit audit = audit_toy(&m, NULL);
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES)
            fail_msg("%s: %s: %s", m.name, mg_audit_probe_name(first), audit.finding[first].evidence);
        assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_PASS);
        assert_true(audit.calls > 0);
        assert_int_equal(audit.finding[MG_AUDIT_CACHE].verdict,
                         m.no_cache || m.bare ? MG_AUDIT_NOT_OFFERED : MG_AUDIT_PASS);
        assert_int_equal(audit.finding[MG_AUDIT_BATCH].verdict,
                         m.most_rows == 1 ? MG_AUDIT_NOT_OFFERED : MG_AUDIT_PASS);
        mg_audit_free(&audit);
    }
}

/* Without its probe every fault gets another first verdict: there is no probe that another one makes idle. */
static void each_probe_is_needed(void **state) {
    (void)state;
    bool needed[MG_AUDIT_N_PROBES] = {false};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        toy m = prepared(&faults[i]);
        mg_audit audit = audit_toy(&m, &(mg_audit_options){.skip = 1u << m.first});
        assert_int_equal(audit.finding[m.first].verdict, MG_AUDIT_NOT_OFFERED);
        needed[m.first] |= mg_audit_first(&audit) == MG_AUDIT_N_PROBES;
        mg_audit_free(&audit);
    }
    toy m = {.name = "constant", .constant = true, .ahead = 1};
    mg_audit audit = audit_toy(&m, &(mg_audit_options){.skip = 1u << MG_AUDIT_CONTROL});
    needed[MG_AUDIT_CONTROL] = audit.finding[MG_AUDIT_MASK].verdict == MG_AUDIT_PASS;
    mg_audit_free(&audit);
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++)
        if (!needed[p] && p != MG_AUDIT_REPEAT) fail_msg("nothing needs the probe %s", mg_audit_probe_name(p));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_gets_its_verdict),
        cmocka_unit_test(the_honest_are_acquitted),
        cmocka_unit_test(each_probe_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
