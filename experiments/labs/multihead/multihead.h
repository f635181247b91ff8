/* The two parts of lab multihead: the wiring of heads (lab_multihead.c), and a task that needs two of them. */
#ifndef MASKGRAD_LAB_MULTIHEAD_H
#define MASKGRAD_LAB_MULTIHEAD_H

#include "lab.h"

/* One layer of attention without anything around it, trained with one head and with several (lab_multihead_task.c). */
mg_status lab_multihead_task(mg_lab *lab, mg_error *error);

#endif
