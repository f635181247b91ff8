/* A command's flags in a file: one per line, as "--name value", "name value" or "name = value"; # begins a comment. */
#ifndef MASKGRAD_CONFIG_FILE_H
#define MASKGRAD_CONFIG_FILE_H

#include "flags.h"

/* Read `text`, which is changed and must live as long as the values that come from it, into the tables' values. *given
 * holds the flags. Values may be quoted; a switch may be true or false, and --no-scale is also "scale = false". A usage
 * error names `path` and the line. */
void mg_config_read(const mg_command_line *line, const char *path, char *text, const mg_flag_table *tables,
                    mg_given *given);

#endif
