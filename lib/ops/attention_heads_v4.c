/* attention_heads.c for processors with AVX-512. */
#include "simd.h"

#ifdef MG_CLONES
#pragma GCC target("arch=x86-64-v4")
#define MG_ATTENTION_HEADS mg_attention_heads_v4
#include "attention_heads.c"
#endif
