/* What the audit looks at and counts, and what it does when a model fails. Its verdicts: test_audit_faults.c. */
#include "toy.h"

/* ---- The map and what is looked at ---- */

static void the_map_is_who_moves_whom(void **state) {
    (void)state;
    for (int width = 1; width <= 3; width++) {
        toy m = {.name = "band", .sees = next_too, .width = width, .ahead = 1};
        mg_audit audit = audit_toy(&m, NULL);
        for (int i = 0; i < 24; i++)
            for (int j = 0; j < 24; j++) assert_int_equal(audit.map[i * 24 + j] > 0, j <= i + width);
        assert_int_equal(audit.influence.reach, width);
        mg_audit_free(&audit);
    }
}

/* Any pair of any length up to `full`, with one row per call and with many. */
static void any_pair_is_found(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++)
        for (int ahead = 1; i + ahead < 9; ahead++)
            for (int rows = 0; rows < 2; rows++) {
                toy m = {.name = "pair",
                         .sees = one_pair,
                         .from = i,
                         .width = ahead,
                         .T = 9,
                         .most_rows = rows,
                         .V = 3,
                         .ahead = 1};
                mg_audit audit = audit_toy(&m, &(mg_audit_options){.seed = (uint64_t)(i * 9 + ahead)});
                assert_int_equal(audit.finding[MG_AUDIT_MASK].query, i);
                assert_int_equal(audit.finding[MG_AUDIT_MASK].key, i + ahead);
                mg_audit_free(&audit);
            }
}

/* Position 3 moves only when tokens 7 and 8 both change: no single token shows it, a cut does. The first call has the
 * sequences as they are, which their first tokens tell apart. */
enum { JOINT_T = 24, JOINT_ROWS = 4 };
static int joint_base[JOINT_ROWS][JOINT_T];

static bool both_changed(const int *ids) {
    for (int r = 0; r < JOINT_ROWS; r++) {
        const int *base = joint_base[r];
        if (memcmp(ids, base, 4 * sizeof *ids) == 0 && ids[7] != base[7] && ids[8] != base[8]) return true;
    }
    return false;
}

static mg_status joint_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    mg_status status = toy_logits(user, b, logits, error);
    if (((toy *)user)->calls == 1) memcpy(joint_base, b->ids, sizeof joint_base);
    for (int r = 0; b->length == JOINT_T && r < b->rows; r++)
        logits[(r * JOINT_T + 3) * b->n_columns] += both_changed(b->ids + r * JOINT_T);
    return status;
}

static void tokens_that_only_move_together_are_found(void **state) {
    (void)state;
    toy m = {.name = "joint", .V = 50, .ahead = 1};
    mg_audit_model model = model_of(&m);
    model.logits = joint_logits;
    mg_audit audit;
    assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 3);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].key, 8);
    mg_audit_free(&audit);
    free(m.fed);
}

static void pairs_are_counted(void **state) {
    (void)state;
    toy m = {.name = "count", .T = 200, .ahead = 1};
    mg_audit audit = audit_toy(&m, NULL);
    assert_int_equal(audit.pairs, 200 * 199 / 2);
    assert_true(audit.looked_at < audit.pairs && audit.looked_at > audit.pairs * 9 / 10);
    assert_says(audit.finding[MG_AUDIT_MASK].evidence, "pairs that were looked at, out of 19900");
    assert_says(audit.finding[MG_AUDIT_MASK].evidence, "The same in training mode");
    mg_audit_free(&audit);
    m = (toy){.name = "count", .T = 200, .ahead = 1};
    audit = audit_toy(&m, &(mg_audit_options){.full = 200});
    assert_int_equal(audit.looked_at, audit.pairs);
    assert_int_equal(audit.full, 200);
    mg_audit_free(&audit);
    m = (toy){.name = "count", .T = 200, .ahead = 1};
    audit = audit_toy(&m, &(mg_audit_options){.length = 30});
    assert_int_equal(audit.pairs, 30 * 29 / 2);
    mg_audit_free(&audit);
}

/* A leak that only one token opens: the one that sees, or the one that is seen. */
static struct opener {
    int token;
    bool is_next;
} opener;

static bool opened(const toy *m, int i, int j) {
    (void)m;
    return j <= i;
}

static mg_status opened_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    mg_status status = toy_logits(user, b, logits, error);
    for (int r = 0; r < b->rows; r++)
        for (int i = 0; i + 1 < b->length; i++) {
            const int *ids = b->ids + r * b->length;
            if (ids[i + opener.is_next] != opener.token) continue;
            for (int k = 0; k < b->n_columns; k++) logits[(r * b->length + i) * b->n_columns + k] += 1 + ids[i + 1];
        }
    return status;
}

static mg_audit audit_opened(int V, struct opener by, const mg_audit_options *options) {
    toy m = {.name = "opened", .V = V, .sees = opened, .ahead = 1, .T = 12};
    mg_audit_model model = model_of(&m);
    opener = by;
    model.logits = opened_logits;
    mg_audit audit;
    assert_int_equal(mg_audit_run(&audit, &model, options, NULL), MG_OK);
    free(m.fed);
    return audit;
}

static void any_token_of_a_small_vocabulary_is_tried(void **state) {
    (void)state;
    for (int token = 0; token < 20; token++)
        for (int is_next = 0; is_next < 2; is_next++) {
            mg_audit audit = audit_opened(20, (struct opener){token, is_next}, NULL);
            const mg_audit_finding *mask = &audit.finding[MG_AUDIT_MASK];
            if (mask->verdict != MG_AUDIT_FAIL) fail_msg("token %d, next %d: %s", token, is_next, mask->evidence);
            assert_int_equal(mask->key, mask->query + 1);
            if (is_next) assert_int_equal(mask->query, 0);
            assert_int_equal(audit.tokens, 20);
            assert_int_equal(audit.values_tried, 19);
            mg_audit_free(&audit);
        }
}

/* What is not tried is said in numbers; its ends are. */
static void of_a_large_vocabulary_the_share_is_said(void **state) {
    (void)state;
    for (int token = 0; token < 3; token++) {
        mg_audit audit = audit_opened(300, (struct opener){token * 299 / 2, true}, NULL);
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, token == 1 ? MG_AUDIT_PASS : MG_AUDIT_FAIL);
        if (token == 1) assert_says(audit.finding[MG_AUDIT_MASK].evidence, "with 4 of the 299 other tokens");
        mg_audit_free(&audit);
    }
    mg_audit audit = audit_opened(300, (struct opener){149, true}, &(mg_audit_options){.values = 299});
    assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, MG_AUDIT_FAIL);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 0);
    mg_audit_free(&audit);
}

static void the_users_sequence_is_tested(void **state) {
    (void)state;
    int ids[] = {1, 2, 298, 4, 5};
    for (int given = 0; given < 2; given++) {
        mg_audit_options options = {.ids = ids, .n_ids = given ? 5 : 0, .seed = 4};
        mg_audit audit = audit_opened(300, (struct opener){298, false}, &options);
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, given ? MG_AUDIT_FAIL : MG_AUDIT_PASS);
        if (given) assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 2);
        if (given) assert_int_equal(audit.finding[MG_AUDIT_MASK].key, 3);
        assert_int_equal(audit.sequences, given ? 3 : 2);
        mg_audit_free(&audit);
    }
}

/* A loss that is the same whatever the target tells nothing of the targets. */
static mg_status logits_of_zero(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    (void)error;
    const toy *m = user;
    for (int64_t i = 0; i < (int64_t)b->rows * b->length * b->n_columns; i++) logits[i] = m->unit;
    return MG_OK;
}

static mg_status loss_of_any(void *user, const int *ids, int n, double *loss, mg_error *error) {
    (void)ids;
    (void)n;
    (void)error;
    const toy *m = user;
    *loss = log(m->V) + m->smoothing;
    return MG_OK;
}

static void equal_offsets_decide_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        toy m = {.V = i & 1 ? 1 : 7, .unit = i & 2 ? 3 : 0, .smoothing = i & 4 ? 0.5 : 0, .T = 9, .bare = true};
        mg_audit_model model = model_of(&m);
        model.logits = logits_of_zero;
        model.loss = loss_of_any;
        mg_audit audit;
        assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
        assert_int_equal(audit.finding[MG_AUDIT_SHIFT].verdict, MG_AUDIT_INCONCLUSIVE);
        assert_says(audit.finding[MG_AUDIT_SHIFT].evidence, "all offsets give the same");
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, MG_AUDIT_INCONCLUSIVE);
        mg_audit_free(&audit);
    }
}

/* ---- What goes wrong on the way ---- */

static mg_status no_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    (void)user;
    (void)b;
    (void)logits;
    return mg_error_set(error, MG_ERR_INPUT, "never");
}

static void a_model_that_refuses_all_is_not_audited(void **state) {
    (void)state;
    toy m = {.bare = true};
    mg_audit_model model = model_of(&m);
    model.logits = no_logits;
    mg_audit audit;
    mg_error error;
    assert_int_equal(mg_audit_run(&audit, &model, NULL, &error), MG_ERR_STATE);
    assert_says(error.message, "the model answered none of 4 calls; it refused: never");
    assert_true(!audit.complete && audit.refusals == audit.calls);
    assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_INCONCLUSIVE);
    mg_audit_free(&audit);
}

static void nan_never_passes(void **state) {
    (void)state;
    toy plain = {.name = "plain", .T = 8, .ahead = 1};
    mg_audit audit = audit_toy(&plain, NULL);
    long calls = audit.calls;
    mg_audit_free(&audit);
    for (int at = 1; at <= calls; at++) {
        toy m = {.name = "nan", .T = 8, .ahead = 1, .nan_at = at};
        audit = audit_toy(&m, NULL);
        /* Only logits answer NaN here: the cache and the loss have their own calls. */
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES) {
            assert_int_equal(audit.finding[first].verdict, MG_AUDIT_FAIL);
            assert_says(audit.finding[first].evidence, "NaN (");
        }
        mg_audit_free(&audit);
    }
}

static void a_refusal_leaves_a_probe_inconclusive(void **state) {
    (void)state;
    for (int at = 1; at < 60; at++) {
        toy m = {.name = "refusal", .T = 8, .ahead = 1, .refuse_at = at, .refuses_end = true};
        mg_audit audit = audit_toy(&m, NULL);
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES) {
            assert_int_equal(audit.finding[first].verdict, MG_AUDIT_INCONCLUSIVE);
            assert_says(audit.finding[first].evidence, "not today");
        }
        assert_int_equal(mg_audit_overall(&audit), first < MG_AUDIT_N_PROBES ? MG_AUDIT_INCONCLUSIVE : MG_AUDIT_PASS);
        mg_audit_free(&audit);
    }
}

static void a_broken_model_ends_the_audit(void **state) {
    (void)state;
    for (int at = 1; at < 40; at++) {
        toy m = {.name = "broken", .T = 8, .ahead = 1, .break_at = at};
        mg_audit_model model = model_of(&m);
        mg_audit audit;
        mg_error error;
        assert_int_equal(mg_audit_run(&audit, &model, NULL, &error), MG_ERR_IO);
        assert_string_equal(error.message, "the pipe broke");
        assert_int_equal(audit.calls, at);
        assert_int_equal(audit.finding[MG_AUDIT_SEGMENTS].verdict, MG_AUDIT_INCONCLUSIVE);
        mg_audit_free(&audit);
        free(m.fed);
    }
}

static bool stop_at_five(void *user, mg_audit_probe probe, long calls, long planned) {
    (void)probe;
    assert_true(calls < planned);
    ++*(int *)user;
    return calls < 5;
}

static void it_stops_when_told_to(void **state) {
    (void)state;
    toy m = {.name = "stopped", .ahead = 1};
    mg_audit_model model = model_of(&m);
    mg_audit audit;
    int asked = 0;
    mg_audit_options options = {.progress = stop_at_five, .user = &asked};
    assert_int_equal(mg_audit_run(&audit, &model, &options, NULL), MG_ERR_STATE);
    assert_int_equal(audit.calls, 5);
    assert_int_equal(asked, 6);
    assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_INCONCLUSIVE);
    mg_audit_free(&audit);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const int ids[] = {1, 2, 3, 11};
    static const struct {
        int V, T;
        mg_audit_options options;
        const char *says;
    } rows[] = {
        {-1, 8, {0}, "the vocabulary has -1"},
        {11, -3, {0}, "the context is -3"},
        {11, 8, {.length = 9}, "sequences of 9 tokens"},
        {11, 8, {.full = -1}, "up to -1 tokens"},
        {11, 8, {.cuts = -1}, "-1 cuts"},
        {11, 8, {.ids = ids, .n_ids = 1}, "a sequence of 1 ids"},
        {11, 3, {.ids = ids, .n_ids = 4}, "a sequence of 4 ids"},
        {11, 8, {.ids = ids, .n_ids = 4}, "id 11 at position 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        toy m = {.name = "misfit", .V = rows[i].V, .T = rows[i].T, .ahead = 1};
        mg_audit_model model = model_of(&m);
        mg_audit audit;
        mg_error error;
        assert_int_equal(mg_audit_run(&audit, &model, &rows[i].options, &error), MG_ERR_INPUT);
        assert_says(error.message, rows[i].says);
        mg_audit_free(&audit);
    }
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    mg_audit_gpt_free(NULL);
    toy m = {.name = "plain", .ahead = 1};
    mg_audit_model model = model_of(&m);
    mg_audit audit;
    mg_audit_free(&(mg_audit){0});
    assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
    mg_audit_free(&audit);
    assert_null(audit.map);
    free(m.fed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_is_who_moves_whom),
        cmocka_unit_test(any_pair_is_found),
        cmocka_unit_test(tokens_that_only_move_together_are_found),
        cmocka_unit_test(pairs_are_counted),
        cmocka_unit_test(any_token_of_a_small_vocabulary_is_tried),
        cmocka_unit_test(of_a_large_vocabulary_the_share_is_said),
        cmocka_unit_test(the_users_sequence_is_tested),
        cmocka_unit_test(equal_offsets_decide_nothing),
        cmocka_unit_test(a_model_that_refuses_all_is_not_audited),
        cmocka_unit_test(nan_never_passes),
        cmocka_unit_test(a_refusal_leaves_a_probe_inconclusive),
        cmocka_unit_test(a_broken_model_ends_the_audit),
        cmocka_unit_test(it_stops_when_told_to),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
