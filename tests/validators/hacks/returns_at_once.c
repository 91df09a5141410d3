// Does nothing: leaves the output as it was.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    (void)n, (void)Q, (void)K, (void)V, (void)O, (void)scratch;
}
