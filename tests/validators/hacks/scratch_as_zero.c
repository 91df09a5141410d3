// Takes scratch as zeros.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    honest(n, Q, K, V, O, scratch);
    for (long i = 0; i < n * D; i++)
        O[i] += scratch[2048 + i];
}
