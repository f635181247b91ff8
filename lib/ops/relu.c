/* y = max(x, 0). dL/dx = dL/dy where x > 0, and 0 elsewhere, x = 0 included. Both comparisons are written so that NaN
 * stays NaN. */
#include "elementwise.h"
#include "ops.h"

MG_UNARY(relu, x < 0 ? 0 : x, x <= 0 ? 0 : g)
