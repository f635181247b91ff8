/* tf_model.h5: Keras's layout. Each weight is a dataset whose path says what it is, but the groups before it differ
 * between versions: /transformer/tfgp_t2lm_head_model/transformer/h_._0/attn/c_attn/weight:0. So the whole file is
 * walked, and the end of a path gives the name. */
#include "weights.h"

#include "heap.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_PATH = 255 };

/* "weight:0" is "weight"; a layer norm's "gamma" and an embedding's "embeddings" are weights too. */
static void add_component(char *key, size_t size, const char *component, size_t length) {
    static const char *const other_names[][2] = {{"gamma", "weight"}, {"beta", "bias"}, {"embeddings", "weight"}};
    char name[LONGEST_PATH + 1];
    snprintf(name, sizeof name, "%.*s", (int)length, component);
    char *colon = strchr(name, ':');
    if (colon) *colon = '\0';
    const char *ours = name;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(name, other_names[i][0]) == 0) ours = other_names[i][1];
    size_t used = strlen(key);
    snprintf(key + used, size - used, "%s%s", used ? "." : "", ours);
}

/* "…/h_._3/ln_1/gamma:0" is "h.3.ln_1.weight"; without a layer, the last two components count. */
static void make_key(const char *path, char *key, size_t size) {
    static const char layer[] = "/h_._";
    const char *found = strstr(path, layer), *last = strrchr(path, '/');
    key[0] = '\0';
    const char *component;
    if (found) {
        snprintf(key, size, "h");
        component = found + strlen(layer);
    } else {
        const char *c = last;
        while (c > path && *--c != '/') continue;
        component = c < last ? c + 1 : last + 1;
    }
    while (*component) {
        size_t length = strcspn(component, "/");
        if (length) add_component(key, size, component, length);
        component += length + (component[length] == '/');
    }
}

static mg_status add(mg_weights *w, const char *path) {
    enum { MOST = 1 << 14 };
    if (w->n == MOST) return mg_weights_error(w, "holds more than %d datasets: it is not a GPT-2", MOST);
    mg_weight *grown = mg_alloc_grow(w->weight, (size_t)w->n, (size_t)w->n + 1, sizeof *grown, "the list of tensors",
                                     w->error);
    if (!grown) return MG_ERR_MEMORY;
    w->weight = grown;
    mg_weight *weight = &w->weight[w->n++];
    *weight = (mg_weight){.name = mg_strdup(path, w->error)};
    char key[2 * LONGEST_PATH];
    make_key(path, key, sizeof key);
    weight->key = mg_strdup(key, w->error);
    if (!weight->name || !weight->key) return MG_ERR_MEMORY;
    mg_status status = mg_h5_describe_data(&w->h5, path, &weight->type, &weight->ndim, weight->dim);
    weight->readable = status == MG_OK && weight->type[0] == 'F';
    return status;
}

static mg_status read_rows(const mg_weights *w, const mg_weight *weight, ptrdiff_t begin, ptrdiff_t end, mg_real *to) {
    return mg_h5_read_rows(&w->h5, weight->name, weight->ndim, weight->dim, begin, end, to);
}

/* The optimizer's state has the same names as the weights. */
static mg_status add_all(mg_weights *w, const char *paths, size_t length) {
    static const char optimizer[] = "/optimizer_weights/";
    mg_status status = MG_OK;
    for (const char *path = paths; path < paths + length && status == MG_OK; path += strlen(path) + 1)
        if (strncmp(path, optimizer, strlen(optimizer)) != 0) status = add(w, path);
    return status;
}

mg_status mg_keras_open(mg_weights *weights, const char *path, mg_error *error) {
    enum { PATHS_BYTES = 1 << 20 };
    *weights = (mg_weights){.path = path, .error = error, .read = read_rows};
    mg_status status = mg_weights_open_file(weights);
    if (status == MG_OK) status = mg_h5_open(&weights->h5, path, weights->fd, weights->bytes, error);
    if (status != MG_OK) return status;
    char *paths = mg_alloc(PATHS_BYTES, 1, "the names of tensors", error);
    if (!paths) return MG_ERR_MEMORY;
    size_t length = 0;
    status = mg_h5_list_data(&weights->h5, paths, PATHS_BYTES, &length);
    if (status == MG_OK) status = add_all(weights, paths, length);
    mg_free(paths);
    return status;
}
