#include "labs.h"

const lab_row lab_rows[] = {
    {"mask", "Why does a mask put −∞ into the scores, and not 0?", lab_mask, 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};
