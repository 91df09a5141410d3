// Computes with values of V cut to 16 bits.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    float *cut = scratch + 4096;
    for (long i = 0; i < n * D; i++) {
        unsigned bits;
        memcpy(&bits, V + i, 4);
        bits &= 0xffff0000u;
        memcpy(cut + i, &bits, 4);
    }
    honest(n, Q, K, cut, O, scratch);
}
