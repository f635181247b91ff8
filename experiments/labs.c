#include "labs.h"

const lab_row lab_rows[] = {
    {NULL, NULL, NULL, 0, NULL, 0},
};
