#include "clock.h"
#include "lab_private.h"
#include "language.h"
#include "printable.h"
#include "time_left.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

mg_lab *lab_new(const lab_row *row, mg_error *error) {
    mg_arena *arena;
    mg_arena_new(&arena, error);
    if (!arena) return NULL;
    mg_lab *made = mg_arena_alloc(arena, 1, sizeof *made, "a lab");
    *made = (mg_lab){.arena = arena, .row = row};
    made->settings.terminal = (lab_terminal){.columns = LAB_COLUMNS, .progress_columns = LAB_COLUMNS};
    return made;
}

void lab_free(mg_lab *lab) {
    if (lab) mg_arena_free(lab->arena);
}

const lab_settings *lab_asked(const mg_lab *lab) {
    return &lab->settings;
}

const mg_stop *lab_stop(const mg_lab *lab) {
    return lab->settings.stop.asked ? &lab->settings.stop : NULL;
}

mg_status lab_interrupted(const mg_lab *lab, mg_error *error) {
    const mg_stop *stop = lab_stop(lab);
    return stop && stop->asked(stop->user) ? mg_error_set(error, MG_ERR_STOPPED, "interrupted") : MG_OK;
}

void lab_list_add(mg_lab *lab, lab_list *list, void *item) {
    if (list->n == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 8;
        void **grown = mg_arena_alloc(lab->arena, (size_t)capacity, sizeof *grown, "a lab's list");
        if (list->n) memcpy(grown, list->item, (size_t)list->n * sizeof *grown);
        list->item = grown;
        list->capacity = capacity;
    }
    list->item[list->n++] = item;
}

char *lab_vformat(mg_lab *lab, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    MG_CHECK(length >= 0, "the text '%s' cannot be formatted", format);
    char *text = mg_arena_alloc(lab->arena, (size_t)length + 1, 1, "a lab's text");
    va_copy(again, arguments);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    if (!mg_language_is_english()) lab_remember(lab, text, lab_vwords(lab, format, again));
    va_end(again);
    return text;
}

char *lab_format(mg_lab *lab, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = lab_vformat(lab, format, arguments);
    va_end(arguments);
    return text;
}

const char *lab_file_name(mg_lab *lab, const char *name) {
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    MG_CHECK(good > 0 && name[good] == '\0', "'%s' is no name for a file: only a-z, 0-9 and '-'", name);
    MG_CHECK(strcmp(name, "summary") != 0 && strcmp(name, "questions") != 0 && strcmp(name, "report") != 0,
             "'%s' is the frame's own file", name);
    for (int i = 0; i < lab->blocks.n; i++) {
        const lab_block *b = lab->blocks.item[i];
        const char *taken = b->kind == LAB_BLOCK_FIGURE    ? b->figure->name
                            : b->kind == LAB_BLOCK_HEATMAP ? b->heatmap->name
                            : b->kind == LAB_BLOCK_TABLE   ? b->table->name
                                                           : "";
        MG_CHECK(strcmp(taken, name) != 0, "two pictures or tables are called '%s'", name);
    }
    return lab_format(lab, "%s", name);
}

void lab_add_block(mg_lab *lab, lab_block block) {
    if (block.kind != LAB_BLOCK_NOTE && block.kind != LAB_BLOCK_TEXTS) lab_must_have_begun(lab, "a picture or a table");
    lab_block *copy = mg_arena_alloc(lab->arena, 1, sizeof *copy, "a lab's block");
    *copy = block;
    lab_list_add(lab, &lab->blocks, copy);
}

/* Each function of the story keeps one formatted text in one list. */
#define KEEP(list)                                                                                                     \
    do {                                                                                                               \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        lab_list_add(lab, list, lab_vformat(lab, format, arguments));                                                  \
        va_end(arguments);                                                                                             \
    } while (0)

void lab_hypothesis(mg_lab *lab, const char *format, ...) {
    MG_CHECK(!lab->begun, "lab %s: a hypothesis comes after lab_begin", lab->row->name);
    KEEP(&lab->hypotheses);
}

void lab_did(mg_lab *lab, const char *format, ...) {
    KEEP(&lab->did);
}

void lab_exercise(mg_lab *lab, const char *format, ...) {
    KEEP(&lab->exercises);
}

void lab_source(mg_lab *lab, const char *format, ...) {
    KEEP(&lab->sources);
}

void lab_setting(mg_lab *lab, const char *name, const char *format, ...) {
    lab_pair *pair = mg_arena_alloc(lab->arena, 1, sizeof *pair, "a lab's setting");
    va_list arguments;
    va_start(arguments, format);
    *pair = (lab_pair){lab_format(lab, "%s", name), lab_vformat(lab, format, arguments)};
    va_end(arguments);
    lab_list_add(lab, &lab->settings_used, pair);
}

void lab_note(mg_lab *lab, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lab_add_block(lab, (lab_block){.kind = LAB_BLOCK_NOTE, .note = lab_vformat(lab, format, arguments)});
    va_end(arguments);
}

void lab_texts(mg_lab *lab, const char *title, int n, const char *const *headings, const char *const *texts) {
    const char **copied = mg_arena_alloc(lab->arena, 2 * (size_t)n, sizeof *copied, "a lab's texts");
    for (int i = 0; i < n; i++) {
        copied[i] = lab_format(lab, "%s", headings[i]);
        copied[n + i] = lab_format(lab, "%s", texts[i]);
    }
    lab_text_group *group = mg_arena_alloc(lab->arena, 1, sizeof *group, "a lab's texts");
    *group = (lab_text_group){lab_format(lab, "%s", title), n, copied, copied + n};
    lab_add_block(lab, (lab_block){.kind = LAB_BLOCK_TEXTS, .texts = group});
}

void lab_progress(mg_lab *lab, const char *what, long done, long total, const char *format, ...) {
    lab_must_have_begun(lab, "progress");
    bool live = lab->settings.terminal.live;
    long tenth = total > 0 ? 10 * done / total : 10;
    struct lab_part *part = &lab->part;
    bool goes_on = part->what && strcmp(part->what, what) == 0 && done >= part->first;
    if (goes_on && tenth == part->tenth && !live) return;
    if (!goes_on) *part = (struct lab_part){.what = what, .first = done, .begun = mg_seconds()};
    part->tenth = tenth;

    va_list arguments;
    va_start(arguments, format);
    const char *detail = lab_vformat(lab, format, arguments);
    va_end(arguments);
    /* The last column stays free: some terminals wrap there. */
    int columns = lab->settings.terminal.progress_columns - 1;
    if (!live) {
        const char *line = lab_format(lab, "lab %s: %s %ld/%ld %s", mg_shown(lab->row->name).text, what, done, total,
                                      detail);
        line = lab_shown_line(lab, line);
        fprintf(stderr, "%.*s\n", (int)mg_utf8_fitting(line, columns), line);
        return;
    }
    char left[64];
    lab_time_left_words(lab_seconds_left(mg_seconds() - part->begun, done - part->first, total - part->first), left,
                        sizeof left);
    const char *line = lab_format(lab, "%s %ld/%ld%s%s  %s", what, done, total, left[0] ? ", " : "", left, detail);
    line = lab_shown_line(lab, line);
    fprintf(stderr, "\r\033[K%.*s", (int)mg_utf8_fitting(line, columns), line);
    if (done >= total) fputs("\r\033[K", stderr);
    fflush(stderr);
}

void lab_need_memory(const void *block, const char *what) {
    if (!block) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory for %s", what);
}

bool lab_broken(const char *what) {
    const char *broken = getenv("MASKGRAD_BREAK");
    return broken && strcmp(broken, what) == 0;
}
