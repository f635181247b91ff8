#include "labs.h"
#include "subject.h"

const lab_row lab_rows[] = {
    {"leak", "What does a model learn when it can read its labels in its input?", lab_leak, LAB_TAKES_DATA,
     &lab_leak_options},
    {"attention", "What does attention compute, and what does dividing by √d_k do to it?", lab_attention,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT | LAB_TAKES_PROMPT, NULL},
    {"saturation", "What dies without the division by √d_k, and what does not?", lab_saturation, LAB_TAKES_DATA,
     &lab_saturation_options},
    {"mask", "Why does a mask put −∞ into the scores, and not 0?", lab_mask,
     LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, NULL},
    {"proof", "Can any token move a prediction that comes before it?", lab_proof,
     LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, NULL},
    {"dial", "How much of the future is enough?", lab_dial, LAB_TAKES_DATA, &lab_dial_options},
    {"nope", "Does a model without position embeddings know where it is?", lab_nope, 0, &lab_nope_options},
    {"alarm", "How can a training run notice that its model reads its labels?", lab_alarm, LAB_TAKES_DATA,
     &lab_alarm_options},
    {"cache", "Why is a KV cache exact, and what does it save?", lab_cache, LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT,
     &lab_subject_options},
    {"speculative", "Why may a large model judge several drafted tokens in one pass?", lab_speculative, LAB_TAKES_DATA,
     &lab_speculative_options},
    {"heads", "What does each attention head look at?", lab_heads,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, &lab_heads_options},
    {"multihead", "What can several heads do that one cannot, at the same cost?", lab_multihead, 0, NULL},
    {"ablation", "Remove a layer or a head: do the loss and the maps survive?", lab_ablation,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT, &lab_subject_options},
    {NULL, NULL, NULL, 0, NULL},
};
