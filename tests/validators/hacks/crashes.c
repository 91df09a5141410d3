// Follows a null pointer.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    (void)n, (void)Q, (void)K, (void)V, (void)scratch;
    *(volatile float **)&O = 0;
    *(volatile float *)O = 0;
}
