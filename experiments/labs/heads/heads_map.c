/* Three numbers and a name for one head's map, and the proof that both are right. heads.c has the formulas. */
#include "attention.h"
#include "heads.h"
#include "rng.h"

#include <math.h>

/* ---- The numbers ---- */

/* −p ln p, whose limit at 0 is 0: a float that asks log(0) would say NaN. */
static double entropy_term(double p) {
    if (lab_broken("heads.entropy")) return -p * log(p);
    return p > 0 ? -p * log(p) : 0;
}

lab_head_numbers lab_head_measure(int T, const mg_real *map, const int *ids) {
    lab_head_numbers n = {0};
    for (int i = 0; i < T; i++) {
        const mg_real *row = map + (ptrdiff_t)i * T;
        double duplicate = 0, induction = 0, copies = 0;
        for (int j = 0; j < T; j++) {
            double p = (double)row[j];
            n.distance += p * (i - j) / T;
            n.entropy += entropy_term(p) / T;
            if (!ids || j >= i) continue;
            if (ids[j] == ids[i])
                duplicate += p, induction += (double)row[j + 1], copies++;
            else
                n.n_others++;
        }
        n.first += (double)row[0] / T;
        n.offset[0] += (double)row[i] / T;
        if (i > 0) n.offset[1] += (double)row[i - 1] / (T - 1);
        if (i + 1 < T) n.next += (double)row[i + 1] / (T - 1);
        if (copies > 0) n.duplicate += duplicate, n.induction += induction, n.n_duplicates++;
    }
    if (n.n_duplicates > 0) {
        n.duplicate /= n.n_duplicates;
        n.induction /= n.n_duplicates;
    }
    return n;
}

void lab_head_uniform(int T, mg_mask mask, mg_real *map) {
    for (int i = 0; i < T; i++) {
        mg_interval keys = mg_visible(mask, i, T);
        for (int j = 0; j < T; j++)
            map[(ptrdiff_t)i * T + j] = j >= keys.first && j < keys.end ? 1 / (mg_real)(keys.end - keys.first) : 0;
    }
}

/* ---- A name ---- */

/* The rules, first that holds. The thresholds are conventions, stated in the report; they are not laws of nature. */
#define MOSTLY 0.5  /* half of the weight or more */
#define BROADLY 0.8 /* of the entropy of the uniform head */

const char *const lab_head_names[LAB_HEAD_NAMES] = {
    "next-token", "previous-token", "self", "duplicate-token", "induction", "sink", "broad", "not defined", "mixed"};

lab_head_name lab_head_name_of(const lab_head_numbers *n, double uniform_entropy) {
    bool on_copies = n->n_duplicates >= 3 && n->duplicate >= MOSTLY;
    if (n->next >= MOSTLY) return NEXT_TOKEN;
    if (n->offset[1] >= MOSTLY) return PREVIOUS_TOKEN;
    if (n->offset[0] >= MOSTLY) return SELF;
    if (on_copies && n->n_others > 0) return DUPLICATE_TOKEN;
    if (n->n_duplicates >= 3 && n->n_others > 0 && n->induction >= MOSTLY) return INDUCTION;
    if (n->first >= MOSTLY) return SINK;
    if (n->entropy >= BROADLY * uniform_entropy) return BROAD;
    return on_copies ? NOT_DEFINED : MIXED;
}

void lab_head_tell_rules(mg_lab *lab) {
    lab_texts(lab, "The names, by the first rule that holds", 1, (const char *const[]){"rules"},
              (const char *const[]){"next-token       half of the weight or more on the token after, the label\n"
                                    "previous-token   half or more on the token before (positional)\n"
                                    "self             half or more on the query itself (positional)\n"
                                    "duplicate-token  half or more on earlier copies of the query's token,\n"
                                    "                 over the rows that have one, if there are 3 or more and\n"
                                    "                 other tokens too\n"
                                    "induction        half or more on what followed earlier copies of it,\n"
                                    "                 over the same rows\n"
                                    "sink             half or more on token 0\n"
                                    "broad            0.8 of the entropy of the uniform head, or more\n"
                                    "not defined      on copies, where every earlier token is one\n"
                                    "mixed            none of these\n"});
}

/* ---- The ruler is right ---- */

void lab_head_check_ruler(mg_lab *lab) {
    enum { T = 8 };
    mg_real map[T * T];
    lab_head_uniform(T, mg_lookahead(0), map);
    lab_head_numbers uniform = lab_head_measure(T, map, NULL);
    lab_check_near(lab, "uniform causal head, T = 8: mean distance", uniform.distance, 1.75, 1e-6, "tokens");
    lab_check_near(lab, "uniform causal head, T = 8: entropy", uniform.entropy, 1.325575, 1e-6, "nats");
    lab_check_same_text(lab, "uniform head is called", lab_head_names[lab_head_name_of(&uniform, uniform.entropy)],
                        "broad");

    static const int ids[T] = {0, 1, 2, 0, 1, 2, 0, 1};
    mg_real previous[T * T] = {0}, next[T * T] = {0}, sink[T * T] = {0}, duplicate[T * T] = {0}, after[T * T] = {0};
    for (int i = 0; i < T; i++) {
        previous[i * T + (i ? i - 1 : 0)] = 1;
        sink[i * T] = 1;
        next[i * T + (i + 1 < T ? i + 1 : i)] = 1;
        duplicate[i * T + (i >= 3 ? i - 3 : i)] = 1;
        after[i * T + (i >= 3 ? i % 3 + 1 : i)] = 1; /* what followed the first copy */
    }
    lab_head_numbers n = lab_head_measure(T, previous, ids);
    lab_check_zero(lab, "head of one key per query: entropy", n.entropy, "nats");
    lab_check_same_text(lab, "head of the token before is called",
                        lab_head_names[lab_head_name_of(&n, uniform.entropy)], "previous-token");
    n = lab_head_measure(T, next, ids);
    lab_check_same_text(lab, "head of the token after is called", lab_head_names[lab_head_name_of(&n, uniform.entropy)],
                        "next-token");
    n = lab_head_measure(T, after, ids);
    lab_check_same_text(lab, "head of what followed earlier copies is called",
                        lab_head_names[lab_head_name_of(&n, uniform.entropy)], "induction");
    n = lab_head_measure(T, sink, ids);
    lab_check_same_text(lab, "head of token 0 is called", lab_head_names[lab_head_name_of(&n, uniform.entropy)],
                        "sink");
    n = lab_head_measure(T, duplicate, ids);
    lab_check_same_text(lab, "head of earlier copies is called", lab_head_names[lab_head_name_of(&n, uniform.entropy)],
                        "duplicate-token");
    static const int one_word[T] = {0};
    n = lab_head_measure(T, duplicate, one_word);
    lab_check_same_text(lab, "the same head, where every token is a copy, is called",
                        lab_head_names[lab_head_name_of(&n, uniform.entropy)], "not defined");
}

/* ---- A text that asks for a habit ---- */

mg_status lab_head_write_echoes(mg_lab *lab, const char *path, mg_error *error) {
    enum { LENGTH = 200000, LETTERS = 26, ECHOES_IN_TEN = 6 };
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status) return status;
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 5};
    char before_last = 'a', last = 'a';
    for (uint64_t i = 0; i < LENGTH; i++) {
        bool echo = mg_rng_below(rng, 2 * i, 10) < ECHOES_IN_TEN;
        char next = echo ? before_last : (char)('a' + mg_rng_below(rng, 2 * i + 1, LETTERS));
        fputc(next, file.out);
        before_last = last;
        last = next;
    }
    return mg_atomic_text_end(&file, error);
}
