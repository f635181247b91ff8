/* y = a · b. dL/da = dL/dy · b, dL/db = dL/dy · a, each summed over the positions where the operand repeats. */
#include "broadcast.h"
#include "ops.h"

MG_BINARY(mul, a *b, g *b, g *a)
