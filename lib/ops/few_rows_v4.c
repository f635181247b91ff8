/* few_rows.c for processors with AVX-512. */
#include "simd.h"

#ifdef MG_CLONES
#pragma GCC target("arch=x86-64-v4")
#define MG_FEW_ROWS_BUILD mg_few_rows_v4
#include "few_rows.c"
#endif
