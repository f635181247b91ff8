#include "run_alarm.h"
#include "atomic_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

mg_status mg_run_alarm_write(const char *path, const mg_alarm_reading *reading, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status != MG_OK) return status;
    fprintf(file.out,
            "step,evidence,windows,first,bound,last,mean,entropy,cause\n"
            "%" PRId64 ",%.9g,%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.9g,%s\n",
            reading->raised_at, reading->evidence, reading->windows, reading->first, reading->bound, reading->last,
            reading->mean, reading->entropy, mg_alarm_cause_name(reading->cause));
    return mg_atomic_text_end(&file, error);
}

bool mg_run_alarm_resume(const char *path, int64_t step) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    int64_t raised_at;
    bool stays = fscanf(file, "%*[^\n]\n%" SCNd64, &raised_at) == 1 && raised_at < step;
    fclose(file);
    if (!stays) unlink(path);
    return stays;
}
