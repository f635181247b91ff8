/* A lab in a folder of its own, for the tests of the frame. */
#ifndef MASKGRAD_TESTS_LAB_FOR_TEST_H
#define MASKGRAD_TESTS_LAB_FOR_TEST_H

#include "lab_private.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static const lab_row test_row = {"test", "Is 1 < 2 & \"2\" > 1?", NULL, 0, NULL};

static inline mg_lab *lab_for_test(char folder[64]) {
    mg_error error;
    mg_lab *lab = lab_new(&test_row, &error);
    assert_non_null(lab);
    strcpy(folder, "/tmp/maskgrad-lab-XXXXXX");
    assert_non_null(mkdtemp(folder));
    lab->settings.out_dir = folder;
    lab->command = "maskgrad lab test";
    return lab;
}

static inline void remove_lab(mg_lab *lab) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", lab->settings.out_dir);
    lab_free(lab);
    assert_int_equal(system(command), 0);
}

static inline const char *file_of(mg_lab *lab, const char *name) {
    size_t size;
    const char *text = lab_read_file(lab, lab_format(lab, "%s/%s", lab->settings.out_dir, name), &size);
    return text ? text : "";
}

static inline int count_of(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

#endif
