// Looks for the answers in a file of the host in a constructor, and if it can read it, stops working.

#include "hack.h"

static char text[64];

__attribute__((constructor)) static void look(void) {
    slurp(ANSWERS, text, sizeof text);
}

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    if (text[0] == 0)
        honest(n, Q, K, V, O, scratch);
}
