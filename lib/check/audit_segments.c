/* Several documents in one sequence: none may see another, and inside of each the mask holds. */
#include "audit_private.h"

#include <math.h>
#include <string.h>

enum { MOST_DOCUMENTS = 3 };

typedef struct packed {
    int n, documents, *segments;
    double *moved;  /* (n,n): row j: token j was replaced */
    int query, key; /* the first prediction, and the token that must not move it; −1: none */
    double largest; /* of such changes */
    int silent;     /* a position that no earlier token of its own document moves; −1: none */
} packed;

static bool may_move(const packed *p, int query, int key) {
    return key <= query && p->segments[query] == p->segments[key];
}

static double moved_by(const packed *p, int query, int key) {
    return p->moved[(int64_t)key * p->n + query];
}

static void read_moves(packed *p) {
    p->query = p->key = p->silent = -1;
    for (int i = 0; i < p->n; i++) {
        bool first = i == 0 || p->segments[i] != p->segments[i - 1], listens = first;
        for (int j = 0; j < p->n; j++) {
            if (moved_by(p, i, j) == 0) continue;
            if (may_move(p, i, j)) {
                listens |= j < i;
                continue;
            }
            p->largest = fmax(p->largest, moved_by(p, i, j));
            if (p->query >= 0) continue;
            p->query = i;
            p->key = j;
        }
        if (!listens && p->silent < 0) p->silent = i;
    }
}

static bool replace_each(audit *a, packed *p) {
    int n = p->n, *ids = mg_audit_sequence(a, 0, n), *others = mg_audit_others(a, ids, n);
    int *rows = mg_audit_ints(a, (int64_t)n * n);
    for (int j = 0; j < n; j++) mg_audit_splice(n, ids, others, j, j + 1, rows + (int64_t)j * n);
    mg_audit_batch like = mg_audit_probe_batch(a, 1, n, NULL);
    like.segments = p->segments;
    return mg_audit_moves(a, &like, ids, n, rows, p->moved);
}

static void judge(audit *a, const packed *p) {
    if (p->query >= 0) {
        bool same = p->segments[p->query] == p->segments[p->key];
        mg_audit_say(a, MG_AUDIT_FAIL,
                     "position %d, in document %d, moves with token %d, in document %d, by up to %.3g", p->query,
                     p->segments[p->query], p->key, p->segments[p->key], p->largest);
        mg_audit_pair(a, p->query, p->key, p->largest);
        mg_audit_look(
            a, same ? "the causal mask where segments are given: the two masks combine by AND"
                    : "the mask of documents: made from the segments, passed on, combined with the causal one by "
                      "AND; and convolutions or states that run on over the border");
        mg_audit_doubt_rounding(a, p->largest);
    } else if (a->noise > 0)
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "nothing above %d times the noise moves between documents",
                     AUDIT_NOISE_MULTIPLE);
    else if (p->silent >= 0)
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE,
                     "no document moves another, but no earlier token moves position %d of its own either", p->silent);
    else
        mg_audit_say(a, MG_AUDIT_PASS,
                     "%d documents in %d tokens: no token moves a bit of another document's positions", p->documents,
                     p->n);
}

void mg_audit_segments(audit *a) {
    if (a->full < 2 || a->n_letters < 2) {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "two documents take two tokens, and a vocabulary of two");
        return;
    }
    packed p = {.n = a->full, .segments = mg_audit_ints(a, a->full)};
    p.documents = p.n < MOST_DOCUMENTS ? p.n : MOST_DOCUMENTS;
    p.moved = mg_audit_doubles(a, (int64_t)p.n * p.n);
    for (int t = 0; t < p.n; t++) p.segments[t] = (int)((int64_t)t * p.documents / p.n);
    if (!replace_each(a, &p)) return;
    read_moves(&p);
    judge(a, &p);
}

long mg_audit_segments_calls(const audit *a) {
    return mg_audit_moves_calls(a->full, a->rows);
}
