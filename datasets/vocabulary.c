#include "vocabulary.h"

#include "hash.h"
#include "heap.h"

#include <limits.h>
#include <string.h>

/* The slot that holds the token, or the free one where it would go. */
static size_t find_slot(const mg_vocabulary *v, mg_token token) {
    uint64_t hash = mg_fnv1a(MG_FNV_START, token.bytes, token.length);
    size_t at = (size_t)(hash ^ (hash >> 32)) & (v->n_slots - 1);
    while (v->slot[at] >= 0) {
        mg_token other = v->token[v->slot[at]];
        if (other.length == token.length && memcmp(other.bytes, token.bytes, token.length) == 0) break;
        at = (at + 1) & (v->n_slots - 1);
    }
    return at;
}

mg_status mg_vocabulary_reserve(mg_vocabulary *v, int capacity, mg_error *error) {
    if (capacity <= v->capacity) return MG_OK;
    if (capacity > INT_MAX / 2)
        return mg_error_set(error, MG_ERR_INPUT, "a vocabulary of more than %d tokens is not supported", INT_MAX / 2);
    mg_token *token = mg_alloc_grow(v->token, (size_t)v->n, (size_t)capacity, sizeof *token,
                                    "the tokens of a vocabulary", error);
    if (!token) return MG_ERR_MEMORY;
    v->token = token;
    size_t n_slots = 128;
    while (n_slots < 2 * (size_t)capacity) n_slots *= 2;
    int *slot = mg_alloc(n_slots, sizeof *slot, "the index of a vocabulary", error);
    if (!slot) return MG_ERR_MEMORY;
    mg_free(v->slot);
    v->slot = slot;
    v->n_slots = n_slots;
    v->capacity = capacity;
    for (size_t i = 0; i < n_slots; i++) slot[i] = -1;
    for (int i = 0; i < v->n; i++) slot[find_slot(v, v->token[i])] = i;
    return MG_OK;
}

mg_status mg_vocabulary_add(mg_vocabulary *v, mg_token token, int *id, mg_error *error) {
    if (token.length == 1 && (*id = mg_vocabulary_find(v, token)) >= 0) return MG_OK;
    if (v->n == v->capacity) {
        int capacity = v->capacity > INT_MAX / 2 ? INT_MAX : v->capacity ? 2 * v->capacity : 64;
        mg_status status = mg_vocabulary_reserve(v, capacity, error);
        if (status != MG_OK) return status;
    }
    size_t at = find_slot(v, token);
    if (v->slot[at] < 0) {
        v->token[v->n] = token;
        v->slot[at] = v->n++;
    }
    *id = v->slot[at];
    if (token.length == 1) v->of_byte[(unsigned char)token.bytes[0]] = *id + 1;
    return MG_OK;
}

int mg_vocabulary_find(const mg_vocabulary *v, mg_token token) {
    if (token.length == 1) return v->of_byte[(unsigned char)token.bytes[0]] - 1;
    return v->n == 0 ? -1 : v->slot[find_slot(v, token)];
}

void mg_vocabulary_free(mg_vocabulary *v) {
    mg_free(v->token);
    mg_free(v->slot);
    *v = (mg_vocabulary){0};
}
