/* y = a / b. dL/da = dL/dy / b, dL/db = −dL/dy · (a/b) / b, each summed over the positions where the operand
 * repeats. */
#include "broadcast.h"
#include "ops.h"

MG_BINARY(div, a / b, g / b, -g *(a / b) / b)
