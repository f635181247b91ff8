/* maskgrad's own models, audited by the same probes as others'. */
#include "audit.h"

#include "check.h"

static mg_gpt_config small(void) {
    mg_gpt_config c = {0};
    c.n_embd = 16;
    c.block_size = 12;
    c.vocab_size = 20;
    c.init_std = 0.3;
    return c;
}

static mg_gpt *new_gpt(mg_gpt_config c) {
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new_zeros(&gpt, &c, false, NULL), MG_OK);
    mg_gpt_randomize(gpt, 3);
    return gpt;
}

static void our_model_is_audited_by_the_same_probes(void **state) {
    (void)state;
    for (int lookahead = 0; lookahead < 3; lookahead++)
        for (int dropout = 0; dropout < 2; dropout++) {
            mg_gpt_config c = small();
            c.mask = mg_lookahead(lookahead);
            c.dropout = 0.2 * dropout;
            mg_gpt *gpt = new_gpt(c);
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

static mg_audit audit_of(const mg_audit_model *model) {
    mg_audit audit;
    assert_int_equal(mg_audit_run(&audit, model, NULL, NULL), MG_OK);
    return audit;
}

/* Whatever token ends a document, whether positions restart, and how long a window is. */
static void packed_documents_do_not_see_each_other(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        mg_gpt_config c = small();
        c.block_size = i % 3 == 0 ? 6 : 6 + 3 * i;
        c.documents = true;
        c.document_end = i % 4 * 19 / 3; /* the first id and the last one too */
        c.positions_run_on = i % 2;
        if (i % 5 == 4) c.mask = (mg_mask){MG_MASK_WINDOW, 4};
        mg_gpt *gpt = new_gpt(c);
        mg_audit_model model;
        mg_audit_gpt *subject;
        assert_int_equal(mg_audit_gpt_new(&subject, &model, gpt, NULL), MG_OK);
        assert_true(model.can_segment);
        mg_audit audit = audit_of(&model);
        const mg_audit_finding *found = &audit.finding[MG_AUDIT_SEGMENTS];
        if (found->verdict != MG_AUDIT_PASS) fail_msg("%d: %s", i, found->evidence);
        assert_says(found->evidence, "3 documents");
        mg_audit_free(&audit);
        /* The same weights, whose documents see each other. */
        model.step = NULL;
        c.documents = false;
        mg_gpt_see_as(gpt, &c);
        audit = audit_of(&model);
        assert_int_equal(found->verdict, MG_AUDIT_FAIL);
        assert_int_equal(mg_audit_first(&audit), MG_AUDIT_SEGMENTS);
        assert_true(found->key < found->query);
        assert_says(found->look, "the mask of documents");
        mg_audit_free(&audit);
        mg_audit_gpt_free(subject);
        mg_gpt_free(gpt);
    }
}

static void a_model_without_documents_is_not_asked_about_them(void **state) {
    (void)state;
    mg_gpt *gpt = new_gpt(small());
    mg_audit_model model;
    mg_audit_gpt *subject;
    assert_int_equal(mg_audit_gpt_new(&subject, &model, gpt, NULL), MG_OK);
    assert_false(model.can_segment);
    mg_audit_gpt_free(subject);
    mg_gpt_free(gpt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_documents_do_not_see_each_other),
        cmocka_unit_test(a_model_without_documents_is_not_asked_about_them),
        cmocka_unit_test(our_model_is_audited_by_the_same_probes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
