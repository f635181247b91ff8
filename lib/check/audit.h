/* Does this model read its labels? Nine probes of any decoder, through a few callbacks.
 *
 *     mg_audit_model model = {.user = me, .vocab = 65, .context = 64, .logits = my_logits};
 *     mg_audit audit;
 *     mg_status status = mg_audit_run(&audit, &model, NULL, &error);
 *     if (!status) printf("%s\n", audit.finding[MG_AUDIT_MASK].evidence);
 *     mg_audit_free(&audit);
 *
 * Probes run in the order of their enumeration, since an earlier failure explains later ones. What is compared within
 * one shape of batch is compared bit by bit; what is compared between shapes has the tolerance of the model's dtype. */
#ifndef MASKGRAD_AUDIT_H
#define MASKGRAD_AUDIT_H

#include "gpt.h"
#include "influence.h"

typedef enum mg_audit_probe {
    MG_AUDIT_REPEAT,   /* is it a function? */
    MG_AUDIT_BATCH,    /* do the rows of a batch see each other? */
    MG_AUDIT_MASK,     /* does a later token move an earlier prediction? */
    MG_AUDIT_CONTROL,  /* does anything flow at all? */
    MG_AUDIT_PREFIX,   /* is a prefix the beginning of the whole? */
    MG_AUDIT_PADDING,  /* do pads change real positions? */
    MG_AUDIT_CACHE,    /* is feeding in pieces the same? */
    MG_AUDIT_SHIFT,    /* which token is position t scored against? */
    MG_AUDIT_SEGMENTS, /* do packed documents see each other? */
    MG_AUDIT_N_PROBES
} mg_audit_probe;

typedef enum mg_audit_verdict {
    MG_AUDIT_NOT_OFFERED, /* the model has no such callback, or the probe was left out */
    MG_AUDIT_PASS,
    MG_AUDIT_FAIL,
    MG_AUDIT_INCONCLUSIVE
} mg_audit_verdict;

/* How exactly the model computes: it decides tolerances, which are relative to the largest logit. */
typedef enum mg_audit_dtype {
    MG_AUDIT_F32,  /* 1e-4 */
    MG_AUDIT_F64,  /* 1e-9 */
    MG_AUDIT_F16,  /* 1e-2 */
    MG_AUDIT_BF16, /* 5e-2 */
    MG_AUDIT_N_DTYPES
} mg_audit_dtype;

/* ---- The model ---- */

/* A question: the logits of `rows` sequences of `length` tokens. */
typedef struct mg_audit_batch {
    int rows, length;
    const int *ids;      /* (rows, length), each in [0, vocab) */
    int n_columns;       /* how many logits per position are wanted, */
    const int *columns;  /* and which, ascending; NULL: all of the vocabulary */
    bool train;          /* in training mode; dropout, if it can be seeded, with `seed` */
    uint64_t seed;       /* the same in every call of one audit */
    const int *mask;     /* (rows, length): 1 for a token, 0 for a pad; NULL: no pads */
    const int *segments; /* (rows, length): which document a token belongs to, ascending; NULL: one */
} mg_audit_batch;

/* Every callback returns MG_OK; MG_ERR_INPUT with a sentence when the model refuses the request, which leaves that
 * probe inconclusive; any other status ends the audit. */
typedef struct mg_audit_model {
    void *user;
    int vocab, context; /* token ids; the longest sequence */
    int most_rows;      /* per call; 0: any number */
    mg_audit_dtype dtype;
    /* The logits (rows, length, n_columns). Only asked for what `can_…` says. */
    mg_status (*logits)(void *user, const mg_audit_batch *batch, double *logits, mg_error *error);
    bool can_train, can_pad, can_segment;
    /* The logits (n, n_columns) of n tokens that continue what was fed since the last reset, with a cache. `reset`
     * forgets all before the first of them. NULL: no cache. */
    mg_status (*step)(void *user, const int *ids, int n, bool reset, int n_columns, const int *columns, double *logits,
                      mg_error *error);
    /* The training loss of one sequence, a mean in nats. NULL: none. */
    mg_status (*loss)(void *user, const int *ids, int length, double *loss, mg_error *error);
} mg_audit_model;

/* ---- What to do ---- */

typedef struct mg_audit_options {
    uint64_t seed;
    const int *ids; /* a sequence from the user, tested in addition to random ones; NULL: none */
    int n_ids;      /* at least 2, at most the context */
    int length;     /* test sequences of this length; 0: the context */
    int full;       /* every cut and every single token up to this length; 0: 64 */
    int cuts;       /* beyond it, at least this many cuts; 0: 40 */
    int sequences;  /* random ones; 0: 2 */
    int values;     /* other values of each token to try; 0: all of a small vocabulary, 4 of a large one */
    unsigned skip;  /* probes to leave out: bits 1 << mg_audit_probe */
    /* Called before each call of the model; planned is an upper bound. Returns false to stop: the current probe and
     * those after it stay inconclusive. NULL: none. */
    bool (*progress)(void *user, mg_audit_probe probe, long calls, long planned);
    void *user; /* of progress */
} mg_audit_options;

/* ---- What came out ---- */

typedef struct mg_audit_finding {
    mg_audit_verdict verdict;
    char evidence[1024]; /* one or two sentences, with the numbers */
    char look[400];      /* what to look at in the code; "" if there is nothing */
    int query, key;      /* the first pair that convicts: a prediction and the token that it must not see, or, for the
                          * shift, that it is scored against; -1: none */
    double largest;      /* the largest change or difference seen that counts against the model */
    long calls;
} mg_audit_finding;

typedef struct mg_audit {
    mg_audit_finding finding[MG_AUDIT_N_PROBES];
    int length;             /* of the sequences tested, */
    int full;               /* and up to where every pair was looked at */
    int sequences;          /* how many, the user's included */
    int rows;               /* per call */
    double noise;           /* the largest difference between two equal calls */
    mg_influence influence; /* of `map`, or where that has no leak, of what was looked at beyond it */
    double *map;            /* (full, full): the largest change of prediction i when only token j changes */
    int tokens;             /* of the vocabulary that the sequences have */
    int values_tried;       /* of the vocab − 1 other tokens that could stand in each place, in one sequence */
    int64_t pairs,
        looked_at;       /* (prediction, later token) in a sequence of `length`, and those of them that were tested */
    long calls, planned; /* of the model; calls is never more than planned */
    int64_t asked, planned_tokens; /* tokens in those calls: so far, and of a model without a fault at most */
    long refusals;                 /* calls that ended a probe because the model refused */
    bool complete;                 /* whether no error ended it */
} mg_audit;

/* `options` may be NULL. If an error ends the audit, what was found until then is in *result; the current probe and
 * those after it are inconclusive. *result must always be freed. MG_ERR_INPUT: the options do not fit the model.
 * MG_ERR_STATE: it was stopped, or the model refused every call.
 * Running out of memory goes to the failure handler. */
MG_API mg_status mg_audit_run(mg_audit *result, const mg_audit_model *model, const mg_audit_options *options,
                              mg_error *error);
MG_API void mg_audit_free(mg_audit *result);

MG_API const char *mg_audit_probe_name(mg_audit_probe probe); /* "mask" */

/* ---- Not installed: between maskgrad's own files ---- */
/* FAIL if any probe failed, else INCONCLUSIVE if any is, else PASS. */
mg_audit_verdict mg_audit_overall(const mg_audit *result);
/* The first probe that did not pass; MG_AUDIT_N_PROBES if all that was offered did. */
mg_audit_probe mg_audit_first(const mg_audit *result);
const char *mg_audit_probe_question(mg_audit_probe probe);     /* "Does a later token move …?" */
const char *mg_audit_dtype_name(mg_audit_dtype dtype);         /* "f32" */
double mg_audit_tolerance(mg_audit_dtype dtype, double scale); /* of logits as large as `scale` */
typedef struct mg_audit_gpt mg_audit_gpt;
/* Our own model. *model asks *subject, which borrows gpt. The step callback is there if every head is causal. On
 * failure (memory) *subject is NULL. */
mg_status mg_audit_gpt_new(mg_audit_gpt **subject, mg_audit_model *model, mg_gpt *gpt, mg_error *error);
void mg_audit_gpt_free(mg_audit_gpt *subject);
const char *mg_audit_verdict_name(mg_audit_verdict verdict); /* "pass", "not offered" */

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_audit_run, (result, model), (result, model, options, error), mg_audit *result,
          const mg_audit_model *model, const mg_audit_options *options, mg_error *error)
#define mg_audit_run(...) MG_AT(mg_audit_run, __VA_ARGS__)
#endif

#endif
