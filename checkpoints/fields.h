/* The numbers of a checkpoint: one table per struct gives the name of each member in the file. Writing, reading and
 * showing all walk the same table. */
#ifndef MASKGRAD_FIELDS_H
#define MASKGRAD_FIELDS_H

#include "checkpoint.h"

typedef enum mg_field_type {
    MG_FIELD_INT,       /* int; an int64 in the file, as are the next three */
    MG_FIELD_LOOKAHEAD, /* int; MG_LOOKAHEAD_ALL is -1 in the file */
    MG_FIELD_BOOL,      /* bool; 0 or 1 */
    MG_FIELD_NOT,       /* bool; its opposite in the file */
    MG_FIELD_INT64,
    MG_FIELD_UINT64,
    MG_FIELD_HASH, /* uint64_t, shown in hexadecimal */
    MG_FIELD_DOUBLE
} mg_field_type;

typedef struct mg_field {
    const char *name; /* NULL ends a table */
    mg_field_type type;
    size_t offset;
    int since; /* the first format version that has it */
} mg_field;

extern const mg_field mg_config_fields[];    /* of mg_gpt_config */
extern const mg_field mg_train_fields[];     /* of mg_train_state */
extern const mg_field mg_optimizer_fields[]; /* of mg_adamw */

struct mg_h5; /* h5.h */
/* Those that `version` of the format has. */
mg_status mg_fields_write(const struct mg_h5 *h5, const char *object, const mg_field *fields, int version,
                          const void *from);
/* The others stay as they are in `to`. A missing attribute, or a value that its member cannot hold, is an error. */
mg_status mg_fields_read(const struct mg_h5 *h5, const char *object, const mg_field *fields, int version, void *to);
/* The lowest version of the format that can hold these values: the fields that it lacks have their defaults. */
int mg_fields_version(const mg_field *fields, const void *values, const void *defaults);

/* The value of an integer field as it is in the file; not for UINT64, HASH and DOUBLE. */
int64_t mg_field_int(const mg_field *field, const void *from);

#endif
