#include "say.h"
#include "color.h"
#include "columns.h"
#include "wrap.h"

#include <unistd.h>

void mg_print_record(FILE *out, const char *first, const char *indent, const char *text) {
    if (isatty(out == stderr ? STDERR_FILENO : STDOUT_FILENO))
        mg_print_wrapped(out, mg_columns(out), first, indent, text);
    else
        fprintf(out, "%s%s\n", first, text);
}

void mg_vsay(const char *command, const char *format, va_list arguments) {
    mg_error sentence;
    char first[64];
    mg_error_vset(&sentence, MG_OK, format, arguments);
    bool color = mg_terminal_color(stderr);
    snprintf(first, sizeof first, "%smaskgrad %s:%s ", color ? MG_COLOR_BOLD : "", command, color ? MG_COLOR_OFF : "");
    mg_print_record(stderr, first, "    ", sentence.message);
}

void mg_say(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_vsay(command, format, arguments);
    va_end(arguments);
}

void mg_tell(const char *indent, const char *format, ...) {
    mg_error sentence;
    va_list arguments;
    va_start(arguments, format);
    mg_error_vset(&sentence, MG_OK, format, arguments);
    va_end(arguments);
    mg_print_wrapped(stdout, mg_columns(stdout), "", indent, sentence.message);
}
