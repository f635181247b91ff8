/* vsnprintf whose format and strings are translated.
 *
 * The English format says which arguments there are, since they were pushed for it; the translated one may take them
 * in another order ("%2$s"). One that takes others is not used: a catalog is a file, and files may be damaged. */
#define _GNU_SOURCE /* parse_printf_format */
#include "language.h"
#include "utf8.h"

#include <ctype.h>
#include <printf.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 };

typedef union value {
    int i;
    long l;
    long long ll;
    double d;
    const char *s;
    const void *p;
} value;

typedef struct arguments_list {
    int n, type[MOST];
    value value[MOST];
} arguments_list;

/* ---- The arguments ---- */

/* Whether all are of kinds that are known here. */
static bool take(arguments_list *list, const char *format, va_list arguments) {
    list->n = (int)parse_printf_format(format, MOST, list->type);
    if (list->n > MOST) return false;
    for (int i = 0; i < list->n; i++) {
        value *v = &list->value[i];
        switch (list->type[i]) {
        case PA_INT:
        case PA_INT | PA_FLAG_SHORT:
        case PA_CHAR: v->i = va_arg(arguments, int); break;
        case PA_INT | PA_FLAG_LONG: v->l = va_arg(arguments, long); break;
        case PA_INT | PA_FLAG_LONG_LONG: v->ll = va_arg(arguments, long long); break;
        case PA_DOUBLE: v->d = va_arg(arguments, double); break;
        case PA_STRING: v->s = va_arg(arguments, const char *); break;
        case PA_POINTER: v->p = va_arg(arguments, const void *); break;
        default: return false;
        }
    }
    return true;
}

static bool takes_the_same(const char *format, const arguments_list *list) {
    int type[MOST], n = (int)parse_printf_format(format, MOST, type);
    return n == list->n && memcmp(type, list->type, (size_t)n * sizeof *type) == 0;
}

/* ---- One conversion ---- */

typedef struct conversion {
    char flags[8], length[3], type;
    int width, precision; /* -1: none */
    int argument;
} conversion;

/* A position before '$', or 0. */
static int read_position(const char **format) {
    char *end;
    long position = isdigit((unsigned char)**format) ? strtol(*format, &end, 10) : 0;
    if (position == 0 || *end != '$') return 0;
    *format = end + 1;
    return (int)position;
}

static int read_number(const char **format, const arguments_list *list, int *next) {
    if (**format == '*') {
        ++*format;
        int position = read_position(format), at = position ? position - 1 : (*next)++;
        return at < list->n ? list->value[at].i : 0;
    }
    char *end;
    long number = strtol(*format, &end, 10);
    *format = end;
    return (int)number;
}

/* What follows a '%' that another does not follow. */
static conversion read_conversion(const char **format, const arguments_list *list, int *next) {
    conversion c = {.width = -1, .precision = -1};
    int position = read_position(format);
    size_t n = strspn(*format, "-+ #0'");
    if (n > sizeof c.flags - 2) n = sizeof c.flags - 2;
    memcpy(c.flags, *format, n);
    *format += n;
    if (**format == '*' || isdigit((unsigned char)**format)) c.width = read_number(format, list, next);
    if (c.width < -1) {
        c.flags[n] = '-';
        c.width = -c.width;
    }
    if (**format == '.') {
        ++*format;
        c.precision = read_number(format, list, next);
    }
    n = strspn(*format, "hlLqjzt");
    memcpy(c.length, *format, n < 2 ? n : 2);
    *format += n;
    c.type = **format ? *(*format)++ : '%';
    c.argument = position ? position - 1 : (*next)++;
    return c;
}

/* ---- The text ---- */

typedef struct output {
    char *text;
    size_t size, at; /* `at` goes on beyond the size, as snprintf's result does */
    char last;       /* what was put last */
    const mg_wording *wording;
} output;

static void put(output *out, const char *bytes, size_t n, bool reduce) {
    while (n > 0) {
        size_t read = 1, written = 1;
        const char *shown = bytes;
        if (reduce && (unsigned char)*bytes >= 128) {
            shown = mg_ascii_of(bytes, &read);
            written = strlen(shown);
        }
        out->last = shown[written - 1];
        for (size_t i = 0; i < written; i++, out->at++)
            if (out->at + 1 < out->size) out->text[out->at] = shown[i];
        bytes += read;
        n = read < n ? n - read : 0;
    }
}

static void put_blanks(output *out, int n) {
    while (n-- > 0) put(out, " ", 1, false);
}

/* After --, in 'quotes', in a path: a name, which is the same in every language. So is a piece of a text. */
static bool is_name(const output *out, const conversion *c) {
    return c->precision >= 0 || (out->last && strchr("-'`/.=", out->last));
}

static void put_string(output *out, const conversion *c, const char *text) {
    const char *words = !text ? "(null)" : is_name(out, c) ? text : out->wording->words(text, out->wording->user);
    bool ours = words != text;
    size_t n = c->precision >= 0 && !ours ? strnlen(words, (size_t)c->precision) : strlen(words);
    int room = c->width - (words[n] ? (int)n : mg_utf8_columns(words));
    bool left = strchr(c->flags, '-') != NULL;
    if (!left) put_blanks(out, room);
    put(out, words, n, out->wording->ascii && ours);
    if (left) put_blanks(out, room);
}

static void put_number(output *out, const conversion *c, int type, value v) {
    char format[48], text[512], width[16] = "", precision[16] = "";
    if (c->width >= 0) snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0) snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(format, sizeof format, "%%%s%s%s%s%c", c->flags, width, precision, c->length, c->type);
    int n = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    switch (type) {
    case PA_INT | PA_FLAG_LONG: n = snprintf(text, sizeof text, format, v.l); break;
    case PA_INT | PA_FLAG_LONG_LONG: n = snprintf(text, sizeof text, format, v.ll); break;
    case PA_DOUBLE: n = snprintf(text, sizeof text, format, v.d); break;
    case PA_POINTER: n = snprintf(text, sizeof text, format, v.p); break;
    default: n = snprintf(text, sizeof text, format, v.i);
    }
#pragma GCC diagnostic pop
    if (n > 0) put(out, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, false);
}

int mg_vwords(char *text, size_t size, const mg_wording *wording, const char *format, va_list arguments) {
    arguments_list list;
    va_list again;
    va_copy(again, arguments);
    bool known = take(&list, format, again);
    va_end(again);
    if (!known) return vsnprintf(text, size, format, arguments);

    const char *words = mg_words(format);
    if (!takes_the_same(words, &list)) words = format;
    bool reduce = wording->ascii && words != format;
    output out = {.text = text, .size = size, .wording = wording};
    int next = 0;
    while (*words) {
        size_t n = strcspn(words, "%");
        put(&out, words, n, reduce);
        words += n;
        if (!*words) break;
        words++;
        if (*words == '%') {
            put(&out, words++, 1, false);
            continue;
        }
        conversion c = read_conversion(&words, &list, &next);
        if (c.argument >= list.n) continue;
        if (c.type == 's')
            put_string(&out, &c, list.value[c.argument].s);
        else
            put_number(&out, &c, list.type[c.argument], list.value[c.argument]);
    }
    if (size > 0) text[out.at < size ? out.at : size - 1] = '\0';
    return (int)out.at;
}
