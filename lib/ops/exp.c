/* y = e^x. dL/dx = dL/dy · y. */
#include "elementwise.h"
#include "ops.h"

MG_UNARY(exp, mg_exp_real(x), g *y)
