/* maskgrad's own models, audited by the same probes as others'. */
#include "audit.h"

#include "check.h"

static mg_gpt *new_gpt(int lookahead, double dropout) {
    mg_gpt_config c = {0};
    c.n_embd = 16;
    c.block_size = 12;
    c.vocab_size = 20;
    c.init_std = 0.3;
    c.mask = mg_lookahead(lookahead);
    c.dropout = dropout;
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new_zeros(&gpt, &c, false, NULL), MG_OK);
    mg_gpt_randomize(gpt, 3);
    return gpt;
}

static void our_model_is_audited_by_the_same_probes(void **state) {
    (void)state;
    for (int lookahead = 0; lookahead < 3; lookahead++)
        for (int dropout = 0; dropout < 2; dropout++) {
            mg_gpt *gpt = new_gpt(lookahead, 0.2 * dropout);
            mg_audit_model model;
            mg_audit_gpt *subject;
            mg_audit audit;
            assert_int_equal(mg_audit_gpt_new(&subject, &model, gpt, NULL), MG_OK);
            assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
            mg_audit_verdict verdict = mg_audit_overall(&audit);
            if (verdict != (lookahead ? MG_AUDIT_FAIL : MG_AUDIT_PASS))
                fail_msg("lookahead %d: %s", lookahead, audit.finding[mg_audit_first(&audit)].evidence);
            /* Two layers: twice the lookahead. */
            assert_int_equal(audit.influence.reach, 2 * lookahead);
            if (lookahead) assert_int_equal(mg_audit_first(&audit), MG_AUDIT_MASK);
            if (!lookahead && dropout) assert_says(audit.finding[MG_AUDIT_MASK].evidence, "training mode");
            mg_audit_free(&audit);
            mg_audit_gpt_free(subject);
            mg_gpt_free(gpt);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_model_is_audited_by_the_same_probes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
