#include "influence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is known of each row: its map, or how far ahead it sees. */
typedef struct rows {
    ptrdiff_t T;
    const double *map; /* (T,T), or NULL */
    const int *reach;  /* (T): 0 sees nothing ahead, below 0 unknown */
} rows;

/* The furthest column right of the diagonal that moves row i, less i; 0 if none does; below 0 if that is unknown. */
static ptrdiff_t row_reach(const rows *r, ptrdiff_t i) {
    if (!r->map) return r->reach[i];
    for (ptrdiff_t j = r->T - 1; j > i; j--)
        if (r->map[i * r->T + j] != 0) return j - i;
    return 0;
}

static ptrdiff_t next_row(const rows *r, ptrdiff_t from, bool leaking) {
    for (ptrdiff_t i = from; i < r->T - 1; i++) {
        ptrdiff_t reach = row_reach(r, i);
        if (leaking ? reach > 0 : reach == 0) return i;
    }
    return r->T - 1;
}

/* Whether every known row from `first` on that is `leaking` (or not) comes `period` after the one before it, to the
 * end, and all are known up to the second. */
static bool is_periodic(const rows *r, ptrdiff_t first, ptrdiff_t period, bool leaking) {
    for (ptrdiff_t i = first; i < r->T - 1; i++) {
        ptrdiff_t reach = row_reach(r, i);
        if (reach < 0 && i > first + period) continue;
        if (reach < 0 || ((reach > 0) == leaking) != ((i - first) % period == 0)) return false;
    }
    return true;
}

/* 0: none. The last row, which has nothing to see ahead, counts among those that do not leak. */
static ptrdiff_t period_of(const rows *r, ptrdiff_t first, bool leaking) {
    ptrdiff_t T = r->T, period = next_row(r, first + 1, leaking) - first;
    bool again = leaking ? first + period < T - 1 : first + period <= T - 1;
    return again && period > 1 && is_periodic(r, first, period, leaking) ? period : 0;
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

static void describe_rows(const rows *r, mg_influence *found) {
    char *to = found->pattern;
    size_t size = sizeof found->pattern;
    ptrdiff_t last = r->T - 1, first = found->query, honest = next_row(r, first, false), period;
    bool to_the_end = honest == last;
    if (first == 0 && to_the_end) {
        snprintf(to, size, "every prediction");
    } else if (to_the_end) {
        snprintf(to, size, "every prediction from position %td on", first);
    } else if (honest > first + 1 && (period = period_of(r, honest, false)) > 2 && honest - first < period) {
        if (first == 0)
            snprintf(to, size, "every prediction inside its block of %td", period);
        else
            snprintf(to, size, "every prediction inside its block of %td, from position %td on,", period, first);
    } else if ((period = period_of(r, first, true)) > 0 && (r->reach || first < period)) {
        snprintf(to, size, "every %td%s prediction, from position %td on,", period, ordinal_ending(period), first);
    } else if (next_row(r, first + 1, true) == last) {
        snprintf(to, size, "%sthe prediction at position %td", r->map ? "only " : "", first);
    } else {
        snprintf(to, size, "some predictions, from position %td on,", first);
    }
}

static void describe_reach(mg_influence *found) {
    size_t used = strlen(found->pattern);
    bool several = found->pattern[0] == 's';
    snprintf(found->pattern + used, sizeof found->pattern - used, " %s %s%td token%s ahead", several ? "see" : "sees",
             found->reach == 1 ? "" : "up to ", found->reach, found->reach == 1 ? "" : "s");
}

static void describe(ptrdiff_t T, const double *map, mg_influence *found) {
    ptrdiff_t key = only_key(T, map);
    if (key >= 0 && found->pairs > 1) {
        snprintf(found->pattern, sizeof found->pattern, "token %td is seen by %td earlier predictions", key,
                 found->pairs);
        return;
    }
    describe_rows(&(rows){.T = T, .map = map}, found);
    if (found->pairs > 1 && found->pairs == T * (T - 1) / 2) {
        size_t used = strlen(found->pattern);
        snprintf(found->pattern + used, sizeof found->pattern - used, " sees every later token");
    } else
        describe_reach(found);
}

void mg_influence_describe(ptrdiff_t T, const int *reach, mg_influence *found) {
    describe_rows(&(rows){.T = T, .reach = reach}, found);
    describe_reach(found);
}

ptrdiff_t mg_influence_period(ptrdiff_t T, const int *reach, ptrdiff_t first) {
    return period_of(&(rows){.T = T, .reach = reach}, first, true);
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
