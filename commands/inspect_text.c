#include "columns.h"
#include "fields.h"
#include "inspect.h"
#include "language.h"
#include "printable.h"
#include "quote.h"
#include "wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL = 20, NARROW = 40 };

/* "1,234,567" */
typedef struct number_text {
    char text[32];
} number_text;
static number_text grouped(int64_t n) {
    char digits[24];
    number_text number;
    snprintf(digits, sizeof digits, "%" PRId64, n);
    size_t length = strlen(digits), at = 0, start = n < 0;
    for (size_t i = 0; i < length; i++) {
        if (i > start && (length - i) % 3 == 0) number.text[at++] = ',';
        number.text[at++] = digits[i];
    }
    number.text[at] = '\0';
    return number;
}

/* "  label             text", broken between words; on a narrow terminal the text is below. */
static void print_wrapped(const char *label, const char *text) {
    if (mg_columns(stdout) < NARROW) {
        mg_printf("  %s\n", label);
        mg_print_wrapped(stdout, mg_columns(stdout), "    ", "    ", text);
        return;
    }
    char first[64], indent[64];
    mg_snprintf(first, sizeof first, "  %-*s", LABEL, label);
    snprintf(indent, sizeof indent, "  %-*s", LABEL, "");
    mg_print_wrapped(stdout, mg_columns(stdout), first, indent, text);
}

static void print_number(const char *label, int64_t number) {
    print_wrapped(label, grouped(number).text);
}

static void print_field(const mg_field *field, const void *from) {
    char text[64];
    const void *member = (const char *)from + field->offset;
    if (field->type == MG_FIELD_DOUBLE && isnan(*(const double *)member))
        mg_snprintf(text, sizeof text, "none measured");
    else if (field->type == MG_FIELD_DOUBLE)
        snprintf(text, sizeof text, "%.9g", *(const double *)member);
    else if (field->type == MG_FIELD_UINT64)
        snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)member);
    else if (field->type == MG_FIELD_HASH)
        snprintf(text, sizeof text, "%016" PRIx64, *(const uint64_t *)member);
    else if (field->type == MG_FIELD_BOOL || field->type == MG_FIELD_NOT)
        mg_snprintf(text, sizeof text, "%s", mg_field_int(field, from) ? "yes" : "no");
    else if (field->type == MG_FIELD_LOOKAHEAD && *(const int *)member == MG_LOOKAHEAD_ALL)
        mg_snprintf(text, sizeof text, "all");
    else
        snprintf(text, sizeof text, "%" PRId64, mg_field_int(field, from));
    print_wrapped(mg_shown(field->name).text, text); /* as it is in the file, in any language */
}

static void print_fields(const char *title, const mg_field *fields, const void *from) {
    mg_printf("\n%s\n", title);
    for (const mg_field *field = fields; field->name; field++) print_field(field, from);
}

/* One row; if the terminal is too narrow, the name gets a line of its own. */
static void print_row(const char *name, const char *shape, const char *numbers, const char *norm) {
    if (mg_columns(stdout) == LAB_COLUMNS)
        mg_printf("  %-28s %-16s %15s %14s", name, shape, numbers, norm);
    else
        mg_printf("  %s\n    %-12s %11s %11s", name, shape, numbers, norm);
    putchar('\n');
}

static void print_parameters(mg_gpt *gpt) {
    const mg_params *params = mg_gpt_params(gpt);
    mg_printf("\nParameters\n");
    print_row("name", "shape", "numbers", "L2 norm");
    for (int i = 0; i < params->n; i++) {
        const mg_param *p = &params->param[i];
        mg_parameter_summary summary = mg_parameter_summarize(p);
        char norm[32];
        snprintf(norm, sizeof norm, "%.6g", summary.norm);
        print_row(p->name, mg_shape(&p->tensor).text, grouped(mg_size(&p->tensor)).text, norm);
        if (summary.not_finite) mg_printf("    %s of them are NaN or infinite\n", grouped(summary.not_finite).text);
    }
    mg_printf("  %-*s %15s\n", mg_columns(stdout) == LAB_COLUMNS ? 45 : 14, "total",
              grouped(mg_params_count(params)).text);
}

/* As many of the first tokens as fit into a line. */
static void print_tokens(const mg_tokenizer *tokenizer) {
    int column = LABEL + 2;
    mg_printf("  %-*s", LABEL, "first tokens");
    for (int id = 0; id < mg_tokenizer_size(tokenizer); id++) {
        mg_quoted quoted = mg_quote(mg_tokenizer_token(tokenizer, id));
        int length = (int)strlen(quoted.text) + 1;
        if (column + length > mg_columns(stdout)) break;
        column += printf("%s%s", id ? " " : "", quoted.text);
    }
    putchar('\n');
}

static void print_tokenizer(const mg_tokenizer *tokenizer) {
    mg_printf("\nTokenizer\n");
    if (!tokenizer) {
        mg_printf("  none\n");
        return;
    }
    print_wrapped("kind", mg_tokenizer_kind_name(mg_tokenizer_get_kind(tokenizer)));
    print_number("tokens", mg_tokenizer_size(tokenizer));
    if (mg_tokenizer_get_kind(tokenizer) != MG_TOKENIZER_NONE) print_tokens(tokenizer);
}

static void print_verdict(const mg_inspection *inspection) {
    putchar('\n');
    if (inspection->info.sealed)
        mg_print_wrapped(stdout, mg_columns(stdout), "", "",
                         "Verified: every byte was read; the file's seal and the checksum of every dataset match.");
    else
        mg_print_wrapped(stdout, mg_columns(stdout), "", "",
                         "Verified: every dataset was read, and those with a checksum match it. The file has no seal: "
                         "another program rewrote it.");
}

void mg_inspect_print(mg_inspection *inspection) {
    const mg_checkpoint_info *info = &inspection->info;
    printf("%s\n", mg_shown(inspection->path).text);
    print_wrapped("written by", mg_shown(info->creator).text);
    print_number("format version", info->format_version);
    print_number("bytes", info->bytes);
    print_wrapped("mask", mg_mask_in_words(&info->config).text);
    print_fields("Configuration", mg_config_fields, &info->config);
    print_parameters(inspection->checkpoint.gpt);
    if (info->train.batch_size > 0)
        print_fields("Training", mg_train_fields, &info->train);
    else
        mg_printf("\nTraining\n  none: not trained here\n");
    if (info->has_optimizer)
        print_fields("Optimizer: AdamW", mg_optimizer_fields, &info->optimizer);
    else
        mg_printf("\nOptimizer\n  none: weights only\n");
    print_tokenizer(inspection->checkpoint.tokenizer);
    if (inspection->verified) print_verdict(inspection);
}
