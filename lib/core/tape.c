#include "operation.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A gradient's memory that may be used again; written into that memory itself. */
typedef struct spare {
    struct spare *next;
    size_t bytes;
} spare;
enum { SPARE_LISTS = 64 };

struct mg_tape {
    mg_arena *arena;
    mg_node *last;
    bool recording, walking;   /* walking: in mg_backward */
    bool recycle;              /* gradients, … */
    spare *spare[SPARE_LISTS]; /* … whose memory waits here, by a hash of its size */
    uint64_t pass;             /* the number of this call of mg_backward; never repeats in a tape's life */
    mg_profile *profile;
    double profile_mark;
};

mg_status mg_tape_new(mg_tape **tape, mg_error *error) {
    *tape = NULL;
    mg_tape *made = mg_alloc_zero(1, sizeof *made, "a tape", error);
    if (!made) return MG_ERR_MEMORY;
    made->recording = true;
    if (mg_arena_new(&made->arena, error) == MG_OK)
        *tape = made;
    else
        mg_free(made);
    return *tape ? MG_OK : MG_ERR_MEMORY;
}

void mg_tape_free(mg_tape *tape) {
    if (!tape) return;
    mg_arena_free(tape->arena);
    mg_free(tape);
}

void mg_tape_record(mg_tape *tape, bool on) {
    tape->recording = on;
}

void mg_tape_recycle_gradients(mg_tape *tape, bool on) {
    tape->recycle = on;
}

void mg_tape_reset(mg_tape *tape) {
    mg_arena_reset(tape->arena);
    memset(tape->spare, 0, sizeof tape->spare);
    tape->last = NULL;
}

mg_arena_mark mg_tape_mark(const mg_tape *tape) {
    return mg_arena_here(tape->arena);
}

void mg_tape_rewind(mg_tape *tape, mg_arena_mark mark) {
    MG_CHECK(!tape->recording || tape->walking, "tape: what is recorded may still be needed by backward");
    mg_arena_rewind(tape->arena, mark);
}

bool mg_tape_is_recording(const mg_tape *tape) {
    return tape->recording;
}

size_t mg_tape_bytes(const mg_tape *tape) {
    return mg_arena_peak(tape->arena);
}

void *mg_tape_alloc(mg_tape *tape, size_t count, size_t size, const char *what) {
    return mg_arena_alloc(tape->arena, count, size, what);
}

mg_tensor *mg_tape_view(mg_tape *tape, int ndim, const ptrdiff_t *dim, mg_real *data) {
    mg_shape_size(ndim, dim); /* checks it */
    mg_tensor *x = mg_tape_alloc(tape, 1, sizeof *x, "a tensor");
    *x = (mg_tensor){.ndim = ndim, .data = data};
    if (ndim > 0) memcpy(x->dim, dim, (size_t)ndim * sizeof *dim);
    return x;
}

static mg_real *alloc_reals(mg_tape *tape, ptrdiff_t n, const char *what) {
    return mg_tape_alloc(tape, (size_t)n, sizeof(mg_real), what);
}

mg_tensor *mg_tape_output(mg_tape *tape, int ndim, const ptrdiff_t *dim) {
    ptrdiff_t size = mg_shape_size(ndim, dim);
    return mg_tape_view(tape, ndim, dim, alloc_reals(tape, size, "a tensor's data"));
}

mg_tensor *mg_constant(mg_tape *tape, int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_tape_output(tape, ndim, dim);
    memset(x->data, 0, (size_t)mg_size(x) * sizeof(mg_real));
    x->leaf = true;
    return x;
}

mg_tensor *mg_values(mg_tape *tape, int ndim, const ptrdiff_t *dim, const mg_real *values) {
    mg_tensor *x = mg_constant(tape, ndim, dim);
    memcpy(x->data, values, (size_t)mg_size(x) * sizeof *values);
    return x;
}

mg_tensor *mg_randn(mg_tape *tape, int ndim, const ptrdiff_t *dim, mg_rng rng) {
    mg_tensor *x = mg_constant(tape, ndim, dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = (mg_real)mg_rng_normal(rng, (uint64_t)i);
    return x;
}

mg_tensor *mg_leaf(mg_tape *tape, int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_constant(tape, ndim, dim);
    x->requires_grad = true;
    mg_grad(tape, x);
    return x;
}

bool mg_tape_wants(const mg_tape *tape, int n_in, mg_tensor *const *in) {
    if (!tape->recording) return false;
    for (int i = 0; i < n_in; i++)
        if (in[i] && in[i]->requires_grad) return true;
    return false;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mg_profile_row *profile_row(mg_profile *profile, const mg_op *op) {
    for (int i = 0; i < profile->n_rows; i++)
        if (profile->row[i].op == op) return &profile->row[i];
    int last = (int)(sizeof profile->row / sizeof profile->row[0]) - 1;
    int i = profile->n_rows < last ? profile->n_rows++ : last;
    profile->row[i].op = op;
    return &profile->row[i];
}

/* The time since the last mark, which this call moves to now. */
static double lap(mg_tape *tape) {
    double now = seconds(), since = now - tape->profile_mark;
    tape->profile_mark = now;
    return since;
}

void mg_tape_profile(mg_tape *tape, mg_profile *profile) {
    tape->profile = profile;
    if (profile) lap(tape);
}

void mg_tape_append(mg_tape *tape, const mg_op *op, mg_tensor *out, int n_in, mg_tensor *const *in, const void *saved) {
    if (tape->profile) {
        mg_profile_row *row = profile_row(tape->profile, op);
        row->forward_seconds += lap(tape);
        row->calls++;
    }
    if (!mg_tape_wants(tape, n_in, in)) return;
    mg_node *node = mg_tape_alloc(tape, 1, sizeof *node, "a tape's node");
    *node = (mg_node){.op = op, .out = out, .n_in = n_in, .saved = saved, .previous = tape->last};
    node->in = mg_tape_alloc(tape, (size_t)n_in, sizeof *in, "a tape's node");
    memcpy(node->in, in, (size_t)n_in * sizeof(mg_tensor *));
    out->requires_grad = true;
    tape->last = node;
}

static spare **spare_list(mg_tape *tape, size_t bytes) {
    return &tape->spare[bytes / MG_ALIGNMENT % SPARE_LISTS];
}

static size_t gradient_bytes(const mg_tensor *x) {
    size_t bytes = (size_t)mg_size(x) * sizeof(mg_real);
    return bytes < sizeof(spare) ? sizeof(spare) : bytes;
}

static mg_real *new_gradient(mg_tape *tape, const mg_tensor *x) {
    size_t bytes = gradient_bytes(x);
    for (spare **s = spare_list(tape, bytes); *s; s = &(*s)->next) {
        if ((*s)->bytes != bytes) continue;
        spare *taken = *s;
        *s = taken->next;
        return (mg_real *)taken;
    }
    return mg_tape_alloc(tape, bytes, 1, "a gradient");
}

static void recycle_gradient(mg_tape *tape, mg_tensor *x) {
    size_t bytes = gradient_bytes(x);
    spare *s = (spare *)x->grad, **list = spare_list(tape, bytes);
    *s = (spare){*list, bytes};
    *list = s;
    x->grad = NULL;
}

mg_real *mg_grad_beta(mg_tape *tape, mg_tensor *x, mg_real *beta) {
    if (!x->requires_grad) return NULL;
    bool fresh = !x->grad || (!x->leaf && x->grad_pass != tape->pass);
    if (!x->grad) x->grad = new_gradient(tape, x);
    if (fresh && x->leaf) { /* a leaf without a buffer of its own: its sum starts here */
        memset(x->grad, 0, (size_t)mg_size(x) * sizeof(mg_real));
        fresh = false;
    }
    x->grad_pass = tape->pass;
    *beta = fresh ? 0 : 1;
    return x->grad;
}

mg_real *mg_grad(mg_tape *tape, mg_tensor *x) {
    mg_real beta, *grad = mg_grad_beta(tape, x, &beta);
    if (grad && beta == 0) memset(grad, 0, (size_t)mg_size(x) * sizeof(mg_real));
    return grad;
}

#ifdef MG_HOSTILE
static struct {
    const char *op;
    int input;
    mg_real factor;
} broken;

void mg_tape_break(const char *op, int input, mg_real factor) {
    broken.op = op;
    broken.input = input;
    broken.factor = factor;
}

static void break_gradient(const mg_node *node) {
    if (!broken.op || strcmp(broken.op, node->op->name) != 0 || broken.input >= node->n_in) return;
    mg_tensor *x = node->in[broken.input];
    if (!x || !x->requires_grad) return;
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->grad[i] *= broken.factor;
}
#endif

void mg_backward(mg_tape *tape, mg_tensor *loss) {
    MG_CHECK(mg_size(loss) == 1, "backward: the loss has shape %s; it must have one element", mg_shape(loss).text);
    MG_CHECK(loss->requires_grad, "backward: the loss depends on no tensor that requires a gradient");
    tape->pass++;
    mg_grad(tape, loss)[0] += 1;
    tape->walking = true;
    if (tape->profile) lap(tape);
    for (const mg_node *node = tape->last; node; node = node->previous) {
        if (!node->out->grad || node->out->grad_pass != tape->pass) continue; /* the loss does not depend on it */
        node->op->backward(tape, node);
#ifdef MG_HOSTILE
        break_gradient(node);
#endif
        if (tape->profile) profile_row(tape->profile, node->op)->backward_seconds += lap(tape);
        if (tape->recycle) recycle_gradient(tape, node->out);
    }
    tape->walking = false;
}

void mg_op_fail(const char *file, int line, const char *name, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mg_fail_in_call(MG_FAILURE_BUG, file, line, "%s: %s", name, text);
}
