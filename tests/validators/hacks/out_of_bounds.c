// Writes a row too many.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    honest(n, Q, K, V, O, scratch);
    memset(O + n * D, 0, D * sizeof *O);
}
