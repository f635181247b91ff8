/* few_rows.c for processors with AVX2 and FMA. */
#include "simd.h"

#ifdef MG_CLONES
#pragma GCC target("arch=x86-64-v3")
#define MG_FEW_ROWS_BUILD mg_few_rows_v3
#include "few_rows.c"
#endif
