// Takes its stack as zeros.

#include "hack.h"

static __attribute__((noinline)) float leftover(void) {
    float sum = 0;
    volatile float frame[4096];
    for (int i = 0; i < 4096; i++)
        sum += frame[i];
    return sum;
}

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    float garbage = leftover();
    honest(n, Q, K, V, O, scratch);
    O[0] += garbage;
}
