// Never returns.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    (void)n, (void)Q, (void)K, (void)V, (void)O, (void)scratch;
    for (;;)
        spin(1000);
}
