/* y = ln x. dL/dx = dL/dy / x. */
#include "elementwise.h"
#include "ops.h"

MG_UNARY(log, mg_log_real(x), g / x)
