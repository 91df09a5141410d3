// Honest: what the hostile candidates are compared with. WASTE is work that it does besides, in
// percent of what it has to do. With RIGHT it is honest for so many calls in a process.

#include "hack.h"

#ifndef WASTE
#define WASTE 0
#endif

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    honest(n, Q, K, V, O, scratch);
#ifdef RIGHT
    static long calls;
    if (++calls > RIGHT)
        O[0] += 1;
#endif
    for (long i = 0; i < n * WASTE / 100; i++)
        one_row(n, Q + i % n * D, K, V, O + i % n * D, scratch);
}
