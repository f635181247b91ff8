/* The tree over micro-batches: its sum is the one written by hand, whoever adds up which run of them. */
#include "fixture.h"
#include "sum_tree.h"

enum { SIZE = 40000, MOST = 9 }; /* more than two tiles, and the last is not full */

/* Numbers of very different sizes, so that another order has other bits. */
static mg_real number(ptrdiff_t leaf, ptrdiff_t i) {
    uint32_t bits = (uint32_t)(leaf * 2654435761u + i * 40503u + 12345u);
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    return (mg_real)ldexp((double)(bits & 0xffffff) - 0x800000, (int)(bits >> 24) % 12 - 30);
}

static mg_real by_hand(int n, ptrdiff_t i) {
#define X(leaf) number(leaf, i)
    switch (n) {
    case 1: return X(0);
    case 2: return X(0) + X(1);
    case 3: return (X(0) + X(1)) + X(2);
    case 4: return (X(0) + X(1)) + (X(2) + X(3));
    case 5: return ((X(0) + X(1)) + (X(2) + X(3))) + X(4);
    case 6: return ((X(0) + X(1)) + (X(2) + X(3))) + (X(4) + X(5));
    case 7: return ((X(0) + X(1)) + (X(2) + X(3))) + ((X(4) + X(5)) + X(6));
    case 8: return ((X(0) + X(1)) + (X(2) + X(3))) + ((X(4) + X(5)) + (X(6) + X(7)));
    case 9: return (((X(0) + X(1)) + (X(2) + X(3))) + ((X(4) + X(5)) + (X(6) + X(7)))) + X(8);
    }
#undef X
    fail_msg("no sum of %d by hand", n);
    return 0;
}

static mg_real *leaf_block(int leaf) {
    mg_real *block = mg_alloc(SIZE, sizeof *block, "a test", NULL);
    assert_non_null(block);
    for (ptrdiff_t i = 0; i < SIZE; i++) block[i] = number(leaf, i);
    return block;
}

static void free_zeros(mg_sum_tree *tree) {
    for (int i = 0; i < tree->n_zeros; i++) {
        for (ptrdiff_t k = 0; k < tree->size; k++) assert_true(tree->zeros[i][k] == 0);
        mg_free(tree->zeros[i]);
    }
    tree->n_zeros = 0;
}

static void assert_by_hand(int n, mg_real *block) {
    for (ptrdiff_t i = 0; i < SIZE; i++)
        if (block[i] != by_hand(n, i)) fail_msg("the sum of %d differs at %td", n, i);
    mg_free(block);
}

static void test_as_by_hand(void **state) {
    (void)state;
    int in_another_order = 0;
    for (int n = 1; n <= MOST; n++) {
        mg_sum_tree tree = {.size = SIZE};
        int most = 0;
        for (int leaf = 0; leaf < n; leaf++) {
            if (tree.n > most) most = tree.n;
            mg_sum_tree_add(&tree, (mg_sum_node){leaf, 1, leaf_block(leaf)});
        }
        mg_sum_node root = mg_sum_tree_finish(&tree);
        assert_true(root.begin == 0 && root.count == n && tree.n == 0 && tree.n_zeros == n - 1);
        for (ptrdiff_t i = 0; i < SIZE; i++) {
            mg_real in_order = 0;
            for (int leaf = 0; leaf < n; leaf++) in_order += number(leaf, i);
            in_another_order += in_order != root.block[i];
        }
        assert_by_hand(n, root.block);
        free_zeros(&tree);
        assert_int_equal(most, (int)log2(n));
        assert_int_equal(mg_sum_most_blocks(0, n), most);
    }
    assert_true(in_another_order > SIZE); /* the numbers tell orders apart */
}

/* `ranks` add up as many micro-batches each, in any order of the ranks; then what is left of each is added up. */
static void share(int n, int ranks) {
    int each = n / ranks;
    mg_sum_tree part[MOST], all = {.size = SIZE};
    for (int at = 0; at < ranks; at++) {
        int rank = (at + 1) % ranks;
        part[rank] = (mg_sum_tree){.size = SIZE};
        for (int leaf = rank * each; leaf < (rank + 1) * each; leaf++)
            mg_sum_tree_add(&part[rank], (mg_sum_node){leaf, 1, leaf_block(leaf)});
        free_zeros(&part[rank]);
        ptrdiff_t next = rank * each;
        for (int i = 0; i < part[rank].n; i++) {
            mg_sum_node node = part[rank].node[i];
            assert_int_equal(node.begin, next);
            assert_int_equal(node.count, mg_sum_first_node(next, (rank + 1) * each));
            next += node.count;
        }
        assert_int_equal(next, (rank + 1) * each);
        if ((each & (each - 1)) == 0) assert_int_equal(part[rank].n, 1);
    }
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < part[rank].n; i++) mg_sum_tree_add(&all, part[rank].node[i]);
    assert_by_hand(n, mg_sum_tree_finish(&all).block);
    free_zeros(&all);
}

static void test_shared_in_any_way(void **state) {
    (void)state;
    for (int n = 1; n <= MOST; n++)
        for (int ranks = 1; ranks <= n; ranks++)
            if (n % ranks == 0) share(n, ranks);
}

static void test_of_doubles(void **state) {
    (void)state;
    double x[MOST];
    for (int n = 1; n <= MOST; n++) {
        for (ptrdiff_t i = 0; i < 100; i++) {
            for (int leaf = 0; leaf < n; leaf++) x[leaf] = (double)number(leaf, i);
            assert_true((float)mg_sum_doubles(x, n) == (float)by_hand(n, i) ||
                        fabs(mg_sum_doubles(x, n) - (double)by_hand(n, i)) < 1e-5);
        }
    }
    const double large[] = {1, 1e16, -1e16, 1, 1}; /* ((1 + 1e16) + (−1e16 + 1)) + 1 */
    assert_true(mg_sum_doubles(large, 5) == ((1 + 1e16) + (-1e16 + 1)) + 1);
    assert_true(mg_sum_doubles(large, 3) == (1 + 1e16) - 1e16);
}

/* One update by the library's own functions, with the gradients of the micro-batches one by one. */
static void step_by_hand(mg_trainer *trainer, const mg_train_options *o, const int *ids, const int *targets) {
    mg_gpt *gpt = mg_trainer_model(trainer);
    mg_params *params = mg_gpt_params(gpt);
    mg_tape *tape;
    mg_real *sum[8];
    assert_ok(mg_tape_new(&tape, &fixture_error));
    for (int micro = 0; micro < o->grad_accum; micro++) {
        ptrdiff_t begin = (ptrdiff_t)micro * o->batch_size * o->model.block_size;
        mg_gpt_pass pass = {.training = true, .dropout_seed = o->seed, .dropout_step = (uint32_t)micro};
        mg_tensor *loss = mg_gpt_loss(gpt, tape, ids + begin, targets + begin, o->batch_size, o->model.block_size,
                                      &pass, NULL);
        mg_backward(tape, loss);
        mg_tape_reset(tape);
        sum[micro] = mg_alloc((size_t)params->size, sizeof(mg_real), "a test", NULL);
        memcpy(sum[micro], params->grads, (size_t)params->size * sizeof(mg_real));
        mg_params_zero_grad(params);
    }
    for (ptrdiff_t i = 0; i < params->size; i++) /* of 6: two fours would be another sum */
        params->grads[i] = ((sum[0][i] + sum[1][i]) + (sum[2][i] + sum[3][i])) + (sum[4][i] + sum[5][i]);
    mg_adamw *adamw = mg_trainer_checkpoint(trainer).adamw;
    double norm = mg_params_grad_norm(params) / o->grad_accum;
    mg_adamw_step(adamw, params, mg_lr_at(&o->schedule, 0), mg_clip_scale(norm, o->grad_clip) / o->grad_accum);
    for (int micro = 0; micro < o->grad_accum; micro++) mg_free(sum[micro]);
    mg_tape_free(tape);
}

static void test_a_step_is_the_trees(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.grad_accum = 6;
    options.model.dropout = 0.1;
    mg_trainer *trainer = fixture_trainer(&options, corpus), *hand = fixture_trainer(&options, corpus);
    const mg_train_options *o = mg_trainer_options(trainer);
    const int *ids, *targets;
    fixture_step(trainer);
    mg_trainer_batch(trainer, &ids, &targets);
    step_by_hand(hand, o, ids, targets);
    const mg_params *p = mg_gpt_params(mg_trainer_model(trainer)), *q = mg_gpt_params(mg_trainer_model(hand));
    assert_memory_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
    mg_trainer_free(trainer);
    mg_trainer_free(hand);
    mg_corpus_free(corpus);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_by_hand),
        cmocka_unit_test(test_shared_in_any_way),
        cmocka_unit_test(test_of_doubles),
        cmocka_unit_test(test_a_step_is_the_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
