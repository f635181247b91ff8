/* y = tanh x. dL/dx = dL/dy · (1 − y²). */
#include "elementwise.h"
#include "ops.h"

MG_UNARY(tanh, mg_tanh_real(x), g *(1 - y * y))
