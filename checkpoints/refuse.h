/* What is wrong with a file, in one sentence that begins with its name. */
#ifndef MASKGRAD_REFUSE_H
#define MASKGRAD_REFUSE_H

#include "error.h"

/* Fill the error and return MG_ERR_FORMAT: "'PATH': the header …", or "'PATH' is …" for a sentence that begins with its
 * verb (is, has or holds). */
mg_status mg_refuse_file(mg_error *error, const char *path, const char *format, va_list arguments) MG_PRINTF(3, 0);

/* MG_ERR_FORMAT if the file is what git leaves where a large file was not fetched. */
mg_status mg_refuse_lfs_pointer(int fd, const char *path, mg_error *error);

#endif
