/* Protocol 1 of `maskgrad audit`: a model as JSON lines and numbers through two pipes. docs/audit.md has it byte by
 * byte. */
#ifndef MASKGRAD_AUDIT_PROTOCOL_H
#define MASKGRAD_AUDIT_PROTOCOL_H

#include "audit.h"
#include "audit_pipe.h"

enum { AUDIT_PROTOCOL = 1 };

/* Read the greeting; *model then asks through the pipe, which has to live as long. MG_ERR_FORMAT for a greeting that is
 * none, of another version, or of sizes that cannot be. */
mg_status audit_protocol_greet(audit_pipe *pipe, mg_audit_model *model, mg_error *error);
/* The last line: `report` is a JSON text. */
mg_status audit_protocol_end(audit_pipe *pipe, const char *report, mg_error *error);

#endif
