#include "setting.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = MG_SETTING_ROOM };

static void *place(const mg_setting *flag, void *values) {
    return (char *)values + flag->offset;
}

static const void *const_place(const mg_setting *flag, const void *values) {
    return (const char *)values + flag->offset;
}

size_t mg_next_word(const char **list, const char **word) {
    *word = *list + strspn(*list, " ");
    size_t length = strcspn(*word, " ");
    *list = *word + length;
    return length;
}

bool mg_setting_is_spelled(const mg_setting *setting, const char *spelling, size_t length) {
    if (setting->name && strlen(setting->name) == length && memcmp(setting->name, spelling, length) == 0) return true;
    const char *list = setting->also ? setting->also : "", *word;
    for (size_t n; (n = mg_next_word(&list, &word)) > 0;)
        if (n == length && memcmp(word, spelling, n) == 0) return true;
    return false;
}

bool mg_setting_in_range(const mg_setting *flag, double value) {
    if (!isfinite(value)) return false;
    if (value < flag->min || value > flag->max) return false;
    if ((flag->open & MG_SETTING_OPEN_MIN) && value == flag->min) return false;
    return !((flag->open & MG_SETTING_OPEN_MAX) && value == flag->max);
}

static mg_status refuse_number(const mg_setting *flag, const char *text, mg_error *error) {
    const char *kind = flag->kind != MG_SETTING_REAL ? "a whole number"
                       : isinf(strtod(text, NULL))   ? "a finite number"
                                                     : "a number";
    const char *above = flag->open & MG_SETTING_OPEN_MIN ? "above" : "from";
    const char *format = flag->kind == MG_SETTING_REAL ? "%.15g" : "%.0f";
    char least[64], most[64];
    snprintf(least, sizeof least, format, flag->min);
    if (flag->max >= 1e30)
        return mg_error_set(error, MG_ERR_INPUT, "--%s takes %s %s %s%s, not '%s'", flag->name, kind, above, least,
                            flag->open & MG_SETTING_OPEN_MIN ? "" : " up", text);
    snprintf(most, sizeof most, format, flag->max);
    return mg_error_set(error, MG_ERR_INPUT, "--%s takes %s %s %s %s %s, not '%s'", flag->name, kind, above, least,
                        flag->open & MG_SETTING_OPEN_MAX ? "to below" : "to", most, text);
}

/* strtod and strtoll skip white space before a number; here the text is the number and nothing else. */
static bool starts_as_number(const char *text) {
    return (text[0] >= '0' && text[0] <= '9') || (text[0] && strchr("+-.", text[0]));
}

static mg_status set_number(const mg_setting *flag, void *value, const char *text, mg_error *error) {
    char *end = NULL;
    errno = 0;
    if (flag->kind == MG_SETTING_REAL) {
        double number = starts_as_number(text) ? strtod(text, &end) : NAN;
        bool overflow = errno == ERANGE && fabs(number) > 1;
        if (!end || end == text || *end || overflow || !mg_setting_in_range(flag, number))
            return refuse_number(flag, text, error);
        *(double *)value = number;
        return MG_OK;
    }
    long long number = starts_as_number(text) ? strtoll(text, &end, 10) : 0;
    if (!end || end == text || *end || errno == ERANGE || !mg_setting_in_range(flag, (double)number))
        return refuse_number(flag, text, error);
    if (flag->kind == MG_SETTING_INT)
        *(int *)value = (int)number;
    else
        *(int64_t *)value = number;
    return MG_OK;
}

/* As text, --no-scale is whether there is a scale: it is written as "scale": false. */
static mg_status set_switch(const mg_setting *flag, bool *value, const char *text, mg_error *error) {
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return mg_error_set(error, MG_ERR_INPUT, "%s is true or false, not '%s'", flag->name, text);
    *value = is_true == (flag->kind == MG_SETTING_ON);
    return MG_OK;
}

mg_status mg_setting_set(const mg_setting *flag, void *values, const char *text, mg_error *error) {
    void *value = place(flag, values);
    switch (flag->kind) {
    case MG_SETTING_INT:
    case MG_SETTING_INT64:
    case MG_SETTING_REAL: return set_number(flag, value, text, error);
    case MG_SETTING_ON:
    case MG_SETTING_OFF: return set_switch(flag, value, text, error);
    case MG_SETTING_TEXT:
    case MG_SETTING_LIST: *(const char **)value = text; return MG_OK;
    case MG_SETTING_CUSTOM: return flag->parse(text, value, error);
    case MG_SETTING_HEADING: break;
    }
    return MG_OK;
}

void mg_format_real(double value, char *text, size_t size) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void mg_setting_format(const mg_setting *flag, const void *values, char *text, size_t size) {
    const void *value = const_place(flag, values);
    text[0] = '\0';
    switch (flag->kind) {
    case MG_SETTING_INT: snprintf(text, size, "%d", *(const int *)value); break;
    case MG_SETTING_INT64: snprintf(text, size, "%lld", (long long)*(const int64_t *)value); break;
    case MG_SETTING_REAL: mg_format_real(*(const double *)value, text, size); break;
    case MG_SETTING_ON:
    case MG_SETTING_OFF:
        snprintf(text, size, "%s", *(const bool *)value == (flag->kind == MG_SETTING_ON) ? "true" : "false");
        break;
    case MG_SETTING_TEXT:
    case MG_SETTING_LIST:
        if (*(const char *const *)value) snprintf(text, size, "%s", *(const char *const *)value);
        break;
    case MG_SETTING_CUSTOM: flag->format(value, text, size); break;
    case MG_SETTING_HEADING: break;
    }
}

bool mg_setting_equal(const mg_setting *flag, const void *a, const void *b) {
    char text_a[TEXT_SIZE], text_b[TEXT_SIZE];
    mg_setting_format(flag, a, text_a, sizeof text_a);
    mg_setting_format(flag, b, text_b, sizeof text_b);
    return strcmp(text_a, text_b) == 0;
}

/* ---- Tables ---- */

const mg_setting *mg_setting_next(mg_setting_cursor *at, const mg_settings *tables) {
    for (; tables[at->table].rows; at->table++, at->row = 0)
        while (!mg_setting_is_end(&tables[at->table].rows[at->row])) {
            const mg_setting *setting = &tables[at->table].rows[at->row++];
            if (setting->kind == MG_SETTING_HEADING || setting->role == MG_ROLE_COMMAND) continue;
            at->base = tables[at->table].base;
            return setting;
        }
    return NULL;
}

const mg_setting *mg_settings_conflict(const mg_settings *tables, const void *a, const void *b) {
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, tables));)
        if (s->role == MG_ROLE_FIXED && !mg_setting_equal(s, (const char *)a + at.base, (const char *)b + at.base))
            return s;
    return NULL;
}
