/* What `maskgrad audit` shows: a table, a JSON object, a page. */
#ifndef MASKGRAD_AUDIT_REPORT_H
#define MASKGRAD_AUDIT_REPORT_H

#include "audit.h"

#include <stdio.h>

typedef struct audit_about {
    const char *subject; /* what was audited, as it was named */
    int vocab, context;
    mg_audit_dtype dtype;
    uint64_t seed;
    double seconds;
} audit_about;

void audit_report_print(FILE *out, const audit_about *about, const mg_audit *audit);
/* One object on one line; free with free(). NULL: no memory. */
char *audit_report_json(const audit_about *about, const mg_audit *audit);
/* report.html, with its pictures and their numbers, in a folder that is made. `command` is what to type to repeat it.
 */
mg_status audit_report_html(const char *out_dir, const char *command, const audit_about *about, const mg_audit *audit,
                            mg_error *error);

#endif
