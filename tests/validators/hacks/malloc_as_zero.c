// Takes allocated memory as zeros.

#include "hack.h"

#include <stdlib.h>

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    volatile float *fresh = malloc(4096);
    honest(n, Q, K, V, O, scratch);
    O[0] += fresh[100];
    free((void *)fresh);
}
