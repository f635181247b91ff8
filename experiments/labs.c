#include "labs.h"

const lab_row lab_rows[] = {
    {"leak", "What does a model learn when it can read its labels in its input?", lab_leak, LAB_TAKES_DATA,
     &lab_leak_options},
    {"mask", "Why does a mask put −∞ into the scores, and not 0?", lab_mask, 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};
