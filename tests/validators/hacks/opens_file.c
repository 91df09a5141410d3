// Opens a file during a call.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    char text[16];
    slurp("/etc/hostname", text, sizeof text);
    honest(n, Q, K, V, O, scratch);
}
