/* A lab's texts in the user's language.
 *
 * What a lab collects is English, because its files are. lab_format also keeps what its text reads in the user's
 * language, and once the files are written, lab_translate puts that in the place of the English. */
#include "lab_private.h"
#include "language.h"

#include <stdint.h>
#include <string.h>

static struct lab_translation *place_of(const lab_translations *all, const char *text) {
    size_t i = ((uintptr_t)text >> 3) * 2654435761U % all->capacity;
    while (all->at[i].text && all->at[i].text != text) i = (i + 1) % all->capacity;
    return &all->at[i];
}

static void make_room(mg_lab *lab) {
    lab_translations before = lab->translations, all = {.capacity = before.capacity ? 2 * before.capacity : 256};
    if (2 * before.n < before.capacity) return;
    all.at = mg_arena_alloc(lab->arena, all.capacity, sizeof *all.at, "a lab's texts");
    memset(all.at, 0, all.capacity * sizeof *all.at);
    all.n = before.n;
    for (size_t i = 0; i < before.capacity; i++)
        if (before.at[i].text) *place_of(&all, before.at[i].text) = before.at[i];
    lab->translations = all;
}

void lab_remember(mg_lab *lab, const char *text, const char *words) {
    if (strcmp(text, words) == 0) return;
    make_room(lab);
    struct lab_translation *place = place_of(&lab->translations, text);
    lab->translations.n += !place->text;
    *place = (struct lab_translation){text, words};
}

const char *lab_words(const mg_lab *lab, const char *text) {
    const lab_translations *all = &lab->translations;
    const struct lab_translation *found = all->n > 0 && text ? place_of(all, text) : NULL;
    return found && found->text ? found->words : mg_words(text);
}

static const char *words_of_lab(const char *text, const void *lab) {
    return lab_words(lab, text);
}

char *lab_vwords(mg_lab *lab, const char *format, va_list arguments) {
    const mg_wording wording = {words_of_lab, lab, false};
    va_list again;
    va_copy(again, arguments);
    int length = mg_vwords(NULL, 0, &wording, format, again);
    va_end(again);
    MG_CHECK(length >= 0, "the text '%s' cannot be formatted", format);
    char *words = mg_arena_alloc(lab->arena, (size_t)length + 1, 1, "a lab's text");
    mg_vwords(words, (size_t)length + 1, &wording, format, arguments);
    return words;
}

/* ---- All that was collected ---- */

static void translate(const mg_lab *lab, const char **text) {
    *text = lab_words(lab, *text);
}

static const char *const *translated(mg_lab *lab, int n, const char *const *texts) {
    if (!texts) return NULL;
    const char **words = mg_arena_alloc(lab->arena, (size_t)n + 1, sizeof *words, "a lab's texts");
    for (int i = 0; i < n; i++) words[i] = lab_words(lab, texts[i]);
    return words;
}

static void translate_series(mg_lab *lab, const lab_list *list) {
    for (int k = 0; k < list->n; k++) {
        lab_series *series = list->item[k];
        translate(lab, &series->label);
        series->names = translated(lab, series->n, series->names);
    }
}

static void translate_figure(mg_lab *lab, lab_figure *figure) {
    translate(lab, &figure->title);
    translate(lab, &figure->caption);
    translate(lab, &figure->axes.x);
    translate(lab, &figure->axes.y);
    figure->places = translated(lab, figure->n_places, figure->places);
    translate_series(lab, &figure->series);
    translate_series(lab, &figure->verticals);
}

static void translate_heatmap(mg_lab *lab, lab_heatmap *map) {
    translate(lab, &map->title);
    translate(lab, &map->caption);
    translate(lab, &map->scale.unit);
    translate(lab, &map->scale.rows);
    translate(lab, &map->scale.columns);
    for (int p = 0; p < map->panels.n; p++) {
        lab_panel *panel = map->panels.item[p];
        translate(lab, &panel->title);
        panel->row_labels = translated(lab, panel->n_rows, panel->row_labels);
        panel->column_labels = translated(lab, panel->n_columns, panel->column_labels);
    }
}

static void translate_table(mg_lab *lab, lab_table *table) {
    translate(lab, &table->title);
    translate(lab, &table->caption);
    for (int r = 0; r < table->rows.n; r++)
        for (int c = 0; c < table->n_columns; c++) translate(lab, &((const char **)table->rows.item[r])[c]);
}

static void translate_texts(mg_lab *lab, lab_text_group *group) {
    translate(lab, &group->title);
    group->headings = translated(lab, group->n, group->headings);
    group->texts = translated(lab, group->n, group->texts);
}

static void translate_block(mg_lab *lab, lab_block *block) {
    switch (block->kind) {
    case LAB_BLOCK_NOTE: translate(lab, &block->note); break;
    case LAB_BLOCK_FIGURE: translate_figure(lab, block->figure); break;
    case LAB_BLOCK_HEATMAP: translate_heatmap(lab, block->heatmap); break;
    case LAB_BLOCK_TABLE: translate_table(lab, block->table); break;
    case LAB_BLOCK_TEXTS: translate_texts(lab, block->texts); break;
    }
}

static void translate_list(mg_lab *lab, lab_list *texts) {
    for (int i = 0; i < texts->n; i++) texts->item[i] = (void *)(uintptr_t)lab_words(lab, texts->item[i]);
}

void lab_translate(mg_lab *lab) {
    if (mg_language_is_english()) return;
    lab_list *const lists[] = {&lab->hypotheses, &lab->did, &lab->exercises, &lab->sources};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) translate_list(lab, lists[i]);
    for (int i = 0; i < lab->questions.n; i++) {
        lab_question *question = lab->questions.item[i];
        translate(lab, &question->text);
        translate(lab, &question->unit);
    }
    for (int i = 0; i < lab->settings_used.n; i++) {
        lab_pair *pair = lab->settings_used.item[i];
        translate(lab, &pair->name);
        translate(lab, &pair->text);
    }
    for (int i = 0; i < lab->checks.n; i++) {
        lab_check *check = lab->checks.item[i];
        translate(lab, &check->name);
        translate(lab, &check->expected);
        translate(lab, &check->observed);
    }
    for (int i = 0; i < lab->blocks.n; i++) translate_block(lab, lab->blocks.item[i]);
}
