/* alarms.csv: the alarm's numbers when it was raised. A run without an alarm has no such file. */
#ifndef MASKGRAD_RUN_ALARM_H
#define MASKGRAD_RUN_ALARM_H

#include "alarm.h"

mg_status mg_run_alarm_write(const char *path, const mg_alarm_reading *reading, mg_error *error);
/* Before a run continues at `step`: removes a file of this step or a later one. Returns whether one is left, which
 * means that the run was accused before. */
bool mg_run_alarm_resume(const char *path, int64_t step);

#endif
