#include "labs.h"
#include "subject.h"

/* In the order of the course (docs/course.md), in which `lab all` runs them and its index and reports lead on. */
const lab_row lab_rows[] = {
    {"attention", N_("What does attention compute, and what does dividing by √d_k do to it?"), lab_attention,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT | LAB_TAKES_PROMPT, &lab_subject_options},
    {"mask", N_("Why does a mask put −∞ into the scores, and not 0?"), lab_mask,
     LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, NULL},
    {"leak", N_("What does a model learn when it can read its labels in its input?"), lab_leak, LAB_TAKES_DATA,
     &lab_leak_options},
    {"proof", N_("Can any token move a prediction that comes before it?"), lab_proof,
     LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, NULL},
    {"dial", N_("How much of the future is enough?"), lab_dial, LAB_TAKES_DATA, &lab_dial_options},
    {"alarm", N_("How can a training run notice that its model reads its labels?"), lab_alarm, LAB_TAKES_DATA,
     &lab_alarm_options},
    {"saturation", N_("What dies without the division by √d_k, and what does not?"), lab_saturation, LAB_TAKES_DATA,
     &lab_saturation_options},
    {"multihead", N_("What can several heads do that one cannot, at the same cost?"), lab_multihead, 0, NULL},
    {"heads", N_("What does each attention head look at?"), lab_heads,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT | LAB_PROMPTS_CHECKPOINT, &lab_heads_options},
    {"ablation", N_("Remove a layer or a head: do the loss and the maps survive?"), lab_ablation,
     LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT, &lab_subject_options},
    {"cache", N_("Why is a KV cache exact, and what does it save?"), lab_cache, LAB_TAKES_DATA | LAB_TAKES_CHECKPOINT,
     &lab_subject_options},
    {"speculative", N_("Why may a large model judge several drafted tokens in one pass?"), lab_speculative,
     LAB_TAKES_DATA, &lab_speculative_options},
    {"channel", N_("How much leak is how much loss?"), lab_channel, LAB_TAKES_DATA, &lab_channel_options},
    {"nope", N_("Does a model without position embeddings know where it is?"), lab_nope, 0, &lab_nope_options},
    {"hidden", N_("When is no mask right?"), lab_hidden, LAB_TAKES_DATA, &lab_hidden_options},
    {"packed", N_("What do two documents in one window do to each other?"), lab_packed, LAB_TAKES_DATA,
     &lab_packed_options},
    {NULL, NULL, NULL, 0, NULL},
};
