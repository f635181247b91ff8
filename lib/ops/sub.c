/* y = a − b. dL/da = dL/dy, dL/db = −dL/dy, each summed over the positions where the operand repeats. */
#include "broadcast.h"
#include "ops.h"

MG_BINARY(sub, a - b, g, -g)
