// Imports a function that a kernel has no use for.

#include "hack.h"

#include <stdlib.h>

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    honest(n, Q, K, V, O, scratch);
    if (getenv("FAST"))
        system("true");
}
