/* The rows of flags that several commands have, beside those of setting_rows.h: define ROWS_OF before including this.
 */
#include "setting_rows.h"

/* clang-format off */
#define SEED_FLAG(field, what) {.name = "seed", .also = "s", LONG_COUNT(field, 0, MG_SEED_MAX), .help = what}
#define THREADS_FLAG(field) \
    {.name = "threads", .also = "t", COUNT(field, 0, 256), .help = "Threads (0: one per processor); results do not depend on it"}
#define BATCH_SIZE_FLAG(field, what) {.name = "batch-size", .also = "b", COUNT(field, 1, 1000000), .help = what}
/* clang-format on */
