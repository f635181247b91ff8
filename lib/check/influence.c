#include "influence.h"

#include <math.h>
#include <stdio.h>

/* The furthest column right of the diagonal that moves row i, less i; 0 if none does. */
static ptrdiff_t row_reach(ptrdiff_t T, const double *map, ptrdiff_t i) {
    for (ptrdiff_t j = T - 1; j > i; j--)
        if (map[i * T + j] != 0) return j - i;
    return 0;
}

static ptrdiff_t next_leaking_row(ptrdiff_t T, const double *map, ptrdiff_t from, bool leaking) {
    for (ptrdiff_t i = from; i < T - 1; i++)
        if ((row_reach(T, map, i) > 0) == leaking) return i;
    return T - 1;
}

/* Whether every row from `first` on that is `leaking` (or not) comes `period` after the one before it, to the end. */
static bool is_periodic(ptrdiff_t T, const double *map, ptrdiff_t first, ptrdiff_t period, bool leaking) {
    for (ptrdiff_t i = first; i < T - 1; i++)
        if (((row_reach(T, map, i) > 0) == leaking) != ((i - first) % period == 0)) return false;
    return true;
}

/* 0: none. The last row, which has nothing to see ahead, counts among those that do not leak. */
static ptrdiff_t period_of(ptrdiff_t T, const double *map, ptrdiff_t first, bool leaking) {
    ptrdiff_t period = next_leaking_row(T, map, first + 1, leaking) - first;
    bool again = leaking ? first + period < T - 1 : first + period <= T - 1;
    return again && period > 1 && is_periodic(T, map, first, period, leaking) ? period : 0;
}

/* The only column that any row sees ahead; -1: there are several. */
static ptrdiff_t only_key(ptrdiff_t T, const double *map) {
    ptrdiff_t key = -1;
    for (ptrdiff_t i = 0; i < T; i++)
        for (ptrdiff_t j = i + 1; j < T; j++) {
            if (map[i * T + j] == 0 || j == key) continue;
            if (key >= 0) return -1;
            key = j;
        }
    return key;
}

static const char *ordinal_ending(ptrdiff_t n) {
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    return n / 10 % 10 == 1 || n % 10 > 3 ? "th" : endings[n % 10];
}

static void describe_rows(ptrdiff_t T, const double *map, mg_influence *found) {
    char *to = found->pattern;
    size_t size = sizeof found->pattern;
    ptrdiff_t first = found->query, honest = next_leaking_row(T, map, 0, false), period;
    bool to_the_end = next_leaking_row(T, map, first, false) == T - 1;
    if (first == 0 && to_the_end)
        snprintf(to, size, "every prediction");
    else if (to_the_end)
        snprintf(to, size, "every prediction from position %td on", first);
    else if (honest > 1 && (period = period_of(T, map, honest, false)) > 2 && honest < period)
        snprintf(to, size, "every prediction inside its block of %td", period);
    else if (first < (period = period_of(T, map, first, true)))
        snprintf(to, size, "every %td%s prediction, from position %td on,", period, ordinal_ending(period), first);
    else if (next_leaking_row(T, map, first + 1, true) == T - 1)
        snprintf(to, size, "only the prediction at position %td", first);
    else
        snprintf(to, size, "some predictions, from position %td on,", first);
}

static void describe(ptrdiff_t T, const double *map, mg_influence *found) {
    ptrdiff_t key = only_key(T, map);
    if (key >= 0 && found->pairs > 1) {
        snprintf(found->pattern, sizeof found->pattern, "token %td is seen by %td earlier predictions", key,
                 found->pairs);
        return;
    }
    describe_rows(T, map, found);
    size_t used = 0;
    while (found->pattern[used]) used++;
    bool everything = found->pairs > 1 && found->pairs == T * (T - 1) / 2, several = found->pattern[0] == 's';
    if (everything)
        snprintf(found->pattern + used, sizeof found->pattern - used, " sees every later token");
    else
        snprintf(found->pattern + used, sizeof found->pattern - used, " %s %s%td token%s ahead",
                 several ? "see" : "sees", found->reach == 1 ? "" : "up to ", found->reach,
                 found->reach == 1 ? "" : "s");
}

mg_influence mg_influence_read(ptrdiff_t T, const double *map) {
    mg_influence found = {.query = -1, .key = -1};
    for (ptrdiff_t i = 0; i < T; i++)
        for (ptrdiff_t j = i + 1; j < T; j++) {
            double entry = map[i * T + j];
            if (entry == 0) continue;
            if (found.pairs++ == 0) {
                found.query = i;
                found.key = j;
            }
            if (j - i > found.reach) found.reach = j - i;
            found.largest = isnan(entry) ? INFINITY : fmax(found.largest, entry);
        }
    if (found.pairs > 0) describe(T, map, &found);
    return found;
}
