/* The table of labs. A lab is one file, NAME.c, or one folder, NAME/, and one row. */
#ifndef MASKGRAD_LABS_H
#define MASKGRAD_LABS_H

#include "lab_row.h"

extern const lab_row lab_rows[]; /* ends with a row whose name is NULL */

mg_status lab_leak(mg_lab *lab, mg_error *error);
extern const lab_options lab_leak_options;
mg_status lab_attention(mg_lab *lab, mg_error *error);
mg_status lab_saturation(mg_lab *lab, mg_error *error);
extern const lab_options lab_saturation_options;
mg_status lab_mask(mg_lab *lab, mg_error *error);
mg_status lab_proof(mg_lab *lab, mg_error *error);
mg_status lab_dial(mg_lab *lab, mg_error *error);
extern const lab_options lab_dial_options;
mg_status lab_channel(mg_lab *lab, mg_error *error);
extern const lab_options lab_channel_options;
mg_status lab_nope(mg_lab *lab, mg_error *error);
extern const lab_options lab_nope_options;
mg_status lab_alarm(mg_lab *lab, mg_error *error);
extern const lab_options lab_alarm_options;
mg_status lab_cache(mg_lab *lab, mg_error *error);
mg_status lab_speculative(mg_lab *lab, mg_error *error);
extern const lab_options lab_speculative_options;
mg_status lab_hidden(mg_lab *lab, mg_error *error);
extern const lab_options lab_hidden_options;
mg_status lab_heads(mg_lab *lab, mg_error *error);
extern const lab_options lab_heads_options;
mg_status lab_multihead(mg_lab *lab, mg_error *error);
mg_status lab_ablation(mg_lab *lab, mg_error *error);
mg_status lab_packed(mg_lab *lab, mg_error *error);
extern const lab_options lab_packed_options;

#endif
