/* Other ways to the same logits: a shorter sequence, a padded one, one that is fed in pieces. */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The logits of one sequence, whole. */
static double *whole(audit *a, const int *ids, int length) {
    double *logits = mg_audit_doubles(a, (int64_t)length * a->n_columns);
    mg_audit_batch batch = mg_audit_probe_batch(a, 1, length, ids);
    return mg_audit_logits(a, &batch, logits) ? logits : NULL;
}

static bool too_short(audit *a) {
    if (a->T > 1) return false;
    mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "a sequence of one token has no parts");
    return true;
}

/* ---- prefix ---- */

enum { PREFIXES = 4 };

/* 1, 2, half and all but one, each once; "1, 2, 12 and 23 tokens" in words. */
static int prefix_lengths(int T, int lengths[PREFIXES], char *words, size_t size) {
    int wanted[PREFIXES] = {1, 2, T / 2, T - 1}, n = 0;
    for (int i = 0; i < PREFIXES; i++)
        if (wanted[i] < T && (n == 0 || wanted[i] > lengths[n - 1])) lengths[n++] = wanted[i];
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(words + used, size - used, "%s%d",
                                 i == 0       ? ""
                                 : i == n - 1 ? " and "
                                              : ", ",
                                 lengths[i]);
    snprintf(words + used, size - used, lengths[n - 1] == 1 ? " token" : " tokens");
    return n;
}

void mg_audit_prefix(audit *a) {
    if (too_short(a)) return;
    char words[64];
    int T = a->T, lengths[PREFIXES], n = prefix_lengths(T, lengths, words, sizeof words);
    int *ids = mg_audit_sequence(a, 0, T);
    const double *all = whole(a, ids, T);
    if (!all) return;
    double limit = mg_audit_limit(a, (int64_t)T * a->n_columns, all), largest = 0;
    for (int p = 0; p < n; p++) {
        const double *part = whole(a, ids, lengths[p]);
        if (!part) {
            mg_audit_add(a, " (cut to its first %s)", mg_count_in_english(lengths[p], "token").text);
            return;
        }
        int t = mg_audit_first_apart(a, lengths[p], all, part, limit, &largest);
        if (t < 0) continue;
        mg_audit_say(a, MG_AUDIT_FAIL,
                     "cut to its first %s, position %d of the sequence of %d differs by up to %.3g; %.3g is allowed",
                     mg_count_in_english(lengths[p], "token").text, t, T, largest, limit);
        mg_audit_pair(a, t, lengths[p], largest);
        mg_audit_look(a,
                      "what depends on the length of the input: positions counted from the end, a mean or a norm over "
                      "time, a mask cut from the wrong corner, a buffer that is reused");
        return;
    }
    mg_audit_say(a, MG_AUDIT_PASS, "its first %s alone %s with the whole of %d within %.2g (%.2g is allowed)", words,
                 n == 1 ? "agrees" : "agree", T, largest, limit);
    mg_audit_probe_finding(a)->largest = largest;
}

long mg_audit_prefix_calls(const audit *a) {
    (void)a;
    return 1 + PREFIXES;
}

/* ---- padding ---- */

typedef struct padded {
    int n, pads, real; /* n = pads + real */
    bool left;
    int rows;
    int *ids, *mask; /* (rows, n): row 0 is the padded one, the others are full */
} padded;

static padded pad(audit *a, const int *ids, bool left) {
    padded p = {.n = a->full, .pads = a->full / 4 > 0 ? a->full / 4 : 1, .left = left, .rows = a->rows > 1 ? 2 : 1};
    p.real = p.n - p.pads;
    p.ids = mg_audit_ints(a, (int64_t)p.rows * p.n);
    p.mask = mg_audit_ints(a, (int64_t)p.rows * p.n);
    for (int i = 0; i < p.rows * p.n; i++) {
        p.ids[i] = ids[i % p.n];
        p.mask[i] = 1;
    }
    int start = left ? p.pads : 0;
    for (int t = 0; t < p.n; t++) {
        bool is_pad = t < start || t >= start + p.real;
        p.ids[t] = is_pad ? a->letters[0] : ids[t - start];
        p.mask[t] = !is_pad;
    }
    return p;
}

static bool ask_padded(audit *a, const padded *p, double *logits) {
    mg_audit_batch batch = mg_audit_probe_batch(a, p->rows, p->n, p->ids);
    batch.mask = p->mask;
    return mg_audit_logits(a, &batch, logits);
}

/* Whether the real positions of one side are as they are without pads. Otherwise the verdict is set. */
static bool pads_are_nothing(audit *a, const int *ids, bool left, const double *plain, double *largest) {
    padded p = pad(a, ids, left);
    int64_t K = a->n_columns, start = left ? p.pads : 0, size = p.rows * p.n * K;
    double *one = mg_audit_doubles(a, size), *two = mg_audit_doubles(a, size);
    if (!ask_padded(a, &p, one)) return false;
    for (int t = 0; t < p.n; t++)
        if (!p.mask[t]) p.ids[t] = a->letters[a->n_letters - 1];
    if (!ask_padded(a, &p, two)) return false;
    double change = mg_audit_change(a, p.real * K, one + start * K, two + start * K);
    double limit = mg_audit_limit(a, p.real * K, plain), apart = 0;
    int t = mg_audit_first_apart(a, p.real, plain, one + start * K, limit, &apart);
    *largest = fmax(*largest, apart);
    const char *side = left ? "left" : "right";
    if (change > 0) {
        mg_audit_say(a, MG_AUDIT_FAIL, "other ids in the %d pads on the %s move real positions, by up to %.3g", p.pads,
                     side, change);
        mg_audit_look(a, "the padding mask: passed on, of the right polarity, applied to the keys in every layer");
        mg_audit_doubt_rounding(a, change);
    } else if (t >= 0) {
        mg_audit_say(
            a, MG_AUDIT_FAIL,
            "%d pads on the %s: real position %d differs from the sequence without pads by up to %.3g; %.3g is "
            "allowed, and the pads' own ids do not matter",
            p.pads, side, t, apart, limit);
        mg_audit_look(a, left ? "positions that count the pads: they have to start at 0 at the first real token (a "
                                "cumulative sum of the mask, less 1)"
                              : "what depends on the length with its pads: a mean over time, positions from the end");
    }
    mg_audit_probe_finding(a)->largest = fmax(change, apart);
    return change == 0 && t < 0;
}

static void convict_padded(audit *a, const padded *p, const audit_leak *leak) {
    int query = leak->query - p->pads, cut = leak->cut - p->pads;
    mg_audit_say(a, MG_AUDIT_FAIL,
                 "with %d pads on the left, real position %d moves when the tokens from %d on are replaced, by up to "
                 "%.3g",
                 p->pads, query, cut, leak->largest);
    mg_audit_pair(a, query, cut, leak->largest);
    mg_audit_look(a, "how the padding mask and the causal mask are combined: a key is visible if both allow it");
    mg_audit_doubt_rounding(a, leak->largest);
}

/* On this path too a later token must not move an earlier prediction. */
static bool padded_is_causal(audit *a, const int *ids) {
    padded p = pad(a, ids, true);
    int n = p.n, *others = mg_audit_others(a, p.ids, n), *rows = mg_audit_ints(a, (int64_t)p.real * n);
    double *moved = mg_audit_doubles(a, (int64_t)p.real * n);
    mg_audit_batch like = mg_audit_probe_batch(a, 1, n, NULL);
    audit_leak leak = mg_audit_no_leak(a, n);
    like.mask = p.mask;
    for (int r = 0; r < p.real - 1; r++) mg_audit_splice(n, p.ids, others, p.pads + r + 1, n, rows + (int64_t)r * n);
    if (!mg_audit_moves(a, &like, p.ids, p.real - 1, rows, moved)) return false;
    for (int r = 0; r < p.real - 1; r++) {
        double *by = moved + (int64_t)r * n;
        memset(by, 0, (size_t)p.pads * sizeof *by); /* what is at pads does not count */
        mg_audit_see_cut(&leak, n, p.pads + r + 1, p.ids, rows + (int64_t)r * n, by);
    }
    if (leak.query >= 0) convict_padded(a, &p, &leak);
    return leak.query < 0;
}

void mg_audit_padding(audit *a) {
    if (too_short(a)) return;
    int *ids = mg_audit_sequence(a, 0, a->full), pads = a->full / 4 > 0 ? a->full / 4 : 1;
    const double *plain = whole(a, ids, a->full - pads);
    double largest = 0;
    if (!plain || !pads_are_nothing(a, ids, true, plain, &largest)) return;
    if (!pads_are_nothing(a, ids, false, plain, &largest) || !padded_is_causal(a, ids)) return;
    mg_audit_say(
        a, MG_AUDIT_PASS,
        "%d pads on the left or on the right change no real position by more than %.2g, whatever their ids, and no "
        "later token moves an earlier position beside them",
        pads, largest);
    mg_audit_probe_finding(a)->largest = largest;
}

long mg_audit_padding_calls(const audit *a) {
    return 1 + 2 * 2 + mg_audit_moves_calls(a->full, a->rows);
}

/* ---- cache ---- */

enum { MOST_PIECES = 17, MOST_RANDOM = 8, ONE_BY_ONE = 64 };

typedef struct feeding {
    const char *name;
    int n, piece[ONE_BY_ONE]; /* lengths that sum to the whole */
} feeding;

/* All one by one where that is few calls; else both ends one by one and the middle in one piece. */
static feeding one_by_one(int T) {
    feeding f = {.name = "one by one"};
    int end = MOST_PIECES / 2;
    if (T <= ONE_BY_ONE)
        while (f.n < T) f.piece[f.n++] = 1;
    else {
        f.name = "one by one at both ends";
        while (f.n < MOST_PIECES) f.piece[f.n++] = 1;
        f.piece[end] = T - MOST_PIECES + 1;
    }
    return f;
}

static feeding in_random_pieces(const audit *a, int T) {
    feeding f = {.name = "in random pieces"};
    mg_rng rng = {a->options.seed, MG_STREAM_LAB, 7};
    int left = T, most = T / 3 > 1 ? T / 3 : 1;
    while (left > 0 && f.n < MOST_RANDOM - 1) {
        int piece = 1 + (int)mg_rng_below(rng, (uint64_t)f.n, (uint64_t)most);
        f.piece[f.n] = piece < left ? piece : left;
        left -= f.piece[f.n++];
    }
    if (left > 0) f.piece[f.n++] = left;
    return f;
}

typedef struct cached {
    int T;
    const int *ids, *others; /* another sequence, to be forgotten */
    const double *all;       /* the logits of the whole */
    double *logits, limit, largest;
} cached;

static bool feed(audit *a, cached *c, const int *ids, const feeding *f) {
    for (int p = 0, at = 0; p < f->n; at += f->piece[p++])
        if (!mg_audit_step(a, ids + at, f->piece[p], p == 0, c->logits + (int64_t)at * a->n_columns)) return false;
    return true;
}

/* Feeds the sequence so; whether that is as the whole is. Otherwise the verdict is set. */
static bool feeds_right(audit *a, cached *c, const feeding *f, const char *after, const char *look) {
    if (!feed(a, c, c->ids, f)) return false;
    int t = mg_audit_first_apart(a, c->T, c->all, c->logits, c->limit, &c->largest);
    if (t < 0) return true;
    mg_audit_say(a, MG_AUDIT_FAIL, "fed %s%s, position %d differs from the whole by up to %.3g; %.3g is allowed",
                 f->name, after, t, c->largest, c->limit);
    mg_audit_pair(a, t, -1, c->largest);
    mg_audit_look(a, look);
    return false;
}

/* A token past the end of the context: refused, or as if the oldest token was dropped, or something of its own. */
static bool past_the_end(audit *a, cached *c, char *note, size_t size) {
    bool refused = false;
    double *last = mg_audit_doubles(a, a->n_columns);
    if (c->T < a->model->context) return true;
    if (!mg_audit_step_or_refusal(a, c->others, 1, last, &refused)) return false;
    if (refused) {
        snprintf(note, size, "a token past the context is refused");
        return true;
    }
    int T = c->T, *cropped = mg_audit_ints(a, T);
    memcpy(cropped, c->ids + 1, (size_t)(T - 1) * sizeof *cropped);
    cropped[T - 1] = c->others[0];
    const double *again = whole(a, cropped, T);
    if (!again) return false;
    double apart = mg_audit_difference(a->n_columns, again + (int64_t)(T - 1) * a->n_columns, last);
    if (apart <= c->limit)
        snprintf(note, size, "a token past the context is answered as if the first had been dropped");
    else
        snprintf(note, size,
                 "a token past the context is answered %.2g away from the last %d tokens afresh, which is right for a "
                 "recurrent model or a rolling window and wrong for learned positions",
                 apart, T);
    return true;
}

void mg_audit_cache(audit *a) {
    static const char positions[] =
        "positions that start at 0 with each piece instead of at the cached length; a mask "
        "of a piece that is cut from the wrong corner; keys that are stored in the wrong place";
    static const char stale[] = "a reset that does not clear keys, values, a length or a state";
    int T = a->T;
    cached c = {.T = T, .ids = mg_audit_sequence(a, 0, T), .others = mg_audit_sequence(a, 1, T)};
    c.logits = mg_audit_doubles(a, (int64_t)T * a->n_columns);
    if (!(c.all = whole(a, c.ids, T))) return;
    c.limit = mg_audit_limit(a, (int64_t)T * a->n_columns, c.all);
    feeding once = {.name = "in one piece", .n = 1, .piece = {T}}, singly = one_by_one(T);
    feeding halves = {.name = "in halves", .n = T > 1 ? 2 : 1, .piece = {(T + 1) / 2, T / 2}};
    feeding random = in_random_pieces(a, T);
    char note[256] = "";
    if (!feeds_right(a, &c, &singly, "", positions) || !feed(a, &c, c.others, &halves)) return;
    if (!feeds_right(a, &c, &once, " after a reset", stale) || !feeds_right(a, &c, &halves, "", positions)) return;
    if (!feeds_right(a, &c, &random, "", positions) || !past_the_end(a, &c, note, sizeof note)) return;
    if (!feeds_right(a, &c, &once, " after the end of the context and a reset", stale)) return;
    mg_audit_say(a, MG_AUDIT_PASS,
                 "%d tokens fed %s, in halves, in random pieces and after a reset agree with the whole "
                 "within %.2g (%.2g is allowed)%s%s",
                 T, singly.name, c.largest, c.limit, *note ? "; " : "", note);
    mg_audit_probe_finding(a)->largest = c.largest;
}

long mg_audit_cache_calls(const audit *a) {
    return 1 + one_by_one(a->T).n + 2 + 1 + 2 + MOST_RANDOM + 2 + 1;
}
