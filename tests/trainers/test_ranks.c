/* Several ranks without MPI: each is a thread, and messages are copied. */
#include "fixture.h"
#include "ranks.h"

#include <pthread.h>

enum { MOST = 6, STEPS = 3 };

/* ---- Messages between threads ---- */

static struct post {
    const mg_message *letter[MOST][MOST]; /* from, to; NULL: read, or not sent yet */
    bool is_down;                         /* nothing arrives any more */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} post = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static mg_status exchange(mg_ranks *ranks, const mg_message *sent, int n_sent, const mg_message *received,
                          int n_received, mg_error *error) {
    int own = ranks->rank;
    if (post.is_down) return mg_error_set(error, MG_ERR_IO, "the post is down");
    pthread_mutex_lock(&post.mutex);
    for (int i = 0; i < n_sent; i++) post.letter[own][sent[i].rank] = &sent[i];
    pthread_cond_broadcast(&post.changed);
    for (int i = 0; i < n_received; i++) {
        const mg_message **letter = &post.letter[received[i].rank][own];
        while (!*letter) pthread_cond_wait(&post.changed, &post.mutex);
        assert_int_equal((*letter)->size, received[i].size);
        memcpy(received[i].bytes, (*letter)->bytes, received[i].size);
        *letter = NULL;
        pthread_cond_broadcast(&post.changed);
    }
    for (int i = 0; i < n_sent; i++)
        while (post.letter[own][sent[i].rank]) pthread_cond_wait(&post.changed, &post.mutex);
    pthread_mutex_unlock(&post.mutex);
    return MG_OK;
}

typedef struct member {
    mg_ranks ranks;
    const mg_train_options *options;
    const mg_corpus *corpus;
    mg_trainer *trainer;
    double loss[STEPS], norm[STEPS];
    mg_status status;
    mg_error error;
} member;

static void run(member *members, int count, void *(*work)(void *)) {
    pthread_t thread[MOST];
    for (int rank = 0; rank < count; rank++) {
        members[rank].ranks = (mg_ranks){.rank = rank, .count = count, .exchange = exchange, .missing = -1};
        assert_int_equal(pthread_create(&thread[rank], NULL, work, &members[rank]), 0);
    }
    for (int rank = 0; rank < count; rank++) pthread_join(thread[rank], NULL);
}

/* ---- Training ---- */

static void *train(void *context) {
    member *m = context;
    m->trainer = fixture_trainer(m->options, m->corpus);
    m->status = mg_trainer_set_alarm(m->trainer, &m->error);
    if (m->status == MG_OK) m->status = mg_trainer_set_ranks(m->trainer, &m->ranks, &m->error);
    for (int i = 0; i < STEPS && m->status == MG_OK; i++) {
        mg_step step;
        m->status = mg_trainer_step(m->trainer, &step, &m->error);
        m->loss[i] = step.loss;
        m->norm[i] = step.grad_norm;
    }
    return NULL;
}

static void assert_same(const member *a, const member *b) {
    const mg_params *p = mg_gpt_params(mg_trainer_model(a->trainer)), *q = mg_gpt_params(mg_trainer_model(b->trainer));
    assert_memory_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
    mg_alarm_reading x = mg_alarm_read(mg_trainer_alarm(a->trainer)), y = mg_alarm_read(mg_trainer_alarm(b->trainer));
    assert_close(x.evidence, y.evidence, 0);
}

static void test_any_number_has_the_same_bits(void **state) {
    (void)state;
    static const int micro_batches[] = {1, 2, 3, 4, 5, 6, 8, 12};
    mg_corpus *corpus = fixture_corpus();
    for (size_t i = 0; i < sizeof micro_batches / sizeof *micro_batches; i++) {
        mg_train_options options = fixture_options();
        options.grad_accum = micro_batches[i];
        options.batch_size = 2;
        options.model.dropout = 0.1;
        member alone = {.options = &options, .corpus = corpus};
        run(&alone, 1, train);
        assert_ok(alone.status);
        for (int count = 2; count <= MOST; count++) {
            if (micro_batches[i] % count != 0) continue;
            member all[MOST];
            for (int rank = 0; rank < count; rank++) all[rank] = (member){.options = &options, .corpus = corpus};
            run(all, count, train);
            for (int rank = 0; rank < count; rank++) {
                assert_ok(all[rank].status);
                assert_same(&all[rank], &alone);
                mg_trainer_free(all[rank].trainer);
            }
        }
        mg_trainer_free(alone.trainer);
    }
    mg_corpus_free(corpus);
}

/* A step that could not be shared leaves a trainer that can be freed. */
static void test_a_broken_connection(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.grad_accum = 6;
    member half = {.options = &options, .corpus = corpus};
    half.ranks = (mg_ranks){.rank = 1, .count = 2, .exchange = exchange};
    post.is_down = true;
    train(&half);
    post.is_down = false;
    assert_int_equal(half.status, MG_ERR_IO);
    assert_true(half.ranks.broken);
    mg_trainer_free(half.trainer);
    mg_corpus_free(corpus);
}

/* ---- Agreeing ---- */

static void *disagree(void *context) {
    member *m = context;
    m->status = MG_OK;
    if (m->ranks.rank >= 2) m->status = mg_error_set(&m->error, MG_ERR_INPUT, "number %d says no", m->ranks.rank);
    m->status = mg_ranks_agree(&m->ranks, m->status, &m->error);
    return NULL;
}

static void *differ(void *context) {
    member *m = context;
    m->status = mg_ranks_same(&m->ranks, m->ranks.rank == 3 ? 7 : 8, "data", &m->error);
    return NULL;
}

static void *ask(void *context) {
    member *m = context;
    bool any;
    m->status = mg_ranks_any(&m->ranks, m->ranks.rank == 3, &any, &m->error);
    m->loss[0] = any;
    m->status = mg_ranks_any(&m->ranks, false, &any, &m->error);
    m->loss[1] = any;
    return NULL;
}

static void test_all_hear_the_same(void **state) {
    (void)state;
    member all[4] = {{.status = MG_OK}};
    run(all, 4, disagree);
    for (int rank = 0; rank < 4; rank++) {
        assert_int_equal(all[rank].status, MG_ERR_INPUT);
        assert_string_equal(all[rank].error.message, "rank 2: number 2 says no");
    }
    run(all, 4, differ);
    for (int rank = 0; rank < 4; rank++) {
        assert_int_equal(all[rank].status, MG_ERR_INPUT);
        assert_says(all[rank].error.message, "rank 3 has other data than rank 0");
    }
    run(all, 4, ask);
    for (int rank = 0; rank < 4; rank++) assert_true(all[rank].loss[0] == 1 && all[rank].loss[1] == 0);
}

static void test_what_cannot_be_shared(void **state) {
    (void)state;
    mg_ranks ranks = {.count = 3};
    assert_ok(mg_ranks_check(NULL, 8, &fixture_error));
    assert_ok(mg_ranks_check(&ranks, 6, &fixture_error));
    assert_int_equal(mg_ranks_check(&ranks, 8, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "1, 2, 4 or 8 ranks");
    assert_int_equal(mg_ranks_check(&ranks, 1, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "1 micro-batch of --grad-accum");
    ranks.count = MG_MOST_RANKS + 1;
    assert_int_equal(mg_ranks_check(&ranks, ranks.count, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "at most 1024");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_has_the_same_bits),
        cmocka_unit_test(test_a_broken_connection),
        cmocka_unit_test(test_all_hear_the_same),
        cmocka_unit_test(test_what_cannot_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
