/* y = gelu(x), with the formulas of gelu.h. The backward computes the logistic function again, which is cheaper than
 * reading it back from memory. */
#include "gelu.h"
#include "elementwise.h"
#include "ops.h"

MG_UNARY(gelu, mg_gelu_value(x, mg_gelu_logistic(x)), g *mg_gelu_slope(x, mg_gelu_logistic(x)))
