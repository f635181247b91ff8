/* Rows of settings, short: define ROWS_OF as the struct that they describe, and include this. A row's kind and its
 * member's type must agree, or the row does not compile. */
#include "setting.h"

#define MEMBER(field, ...) (offsetof(ROWS_OF, field) + 0 * sizeof(_Generic(((ROWS_OF *)0)->field, __VA_ARGS__)))
#define FIXED .role = MG_ROLE_FIXED
#define FREE .role = MG_ROLE_FREE
#define COUNT(field, low, high)                                                                                        \
    .kind = MG_SETTING_INT, .offset = MEMBER(field, int : 0), .min = low, .max = high, .argument = "N"
#define LONG_COUNT(field, low, high)                                                                                   \
    .kind = MG_SETTING_INT64, .offset = MEMBER(field, int64_t : 0, uint64_t : 0), .min = low, .max = high,             \
    .argument = "N"
#define REAL(field, low, high)                                                                                         \
    .kind = MG_SETTING_REAL, .offset = MEMBER(field, double : 0), .min = low, .max = high, .argument = "X"
#define TEXT(field, what) .kind = MG_SETTING_TEXT, .offset = MEMBER(field, const char * : 0), .argument = what
#define LIST(field, what) .kind = MG_SETTING_LIST, .offset = MEMBER(field, const char * : 0), .argument = what
#define ON(field) .kind = MG_SETTING_ON, .offset = MEMBER(field, bool : 0)
#define OFF(field) .kind = MG_SETTING_OFF, .offset = MEMBER(field, bool : 0)
#define CUSTOM(field, parser, formatter, what)                                                                         \
    .kind = MG_SETTING_CUSTOM, .offset = offsetof(ROWS_OF, field), .parse = parser, .format = formatter,               \
    .argument = what
