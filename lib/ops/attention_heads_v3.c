/* attention_heads.c for processors with AVX2 and FMA. */
#include "simd.h"

#ifdef MG_CLONES
#pragma GCC target("arch=x86-64-v3")
#define MG_ATTENTION_HEADS mg_attention_heads_v3
#include "attention_heads.c"
#endif
