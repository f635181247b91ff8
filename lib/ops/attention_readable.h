/* Attention to be read. Slow, and the oracle for the fast one: tests/ops/test_attention_oracle.c compares the two. */
#ifndef MASKGRAD_ATTENTION_READABLE_H
#define MASKGRAD_ATTENTION_READABLE_H

#include "attention.h"
#include "operation.h"

/* For tests and readers: mg_attention; of its options, only n_head, mask, sequence and scale. */
mg_tensor *mg_attention_readable(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options);

#endif
