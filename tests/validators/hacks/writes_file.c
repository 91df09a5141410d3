// Makes a file in a constructor, to leave word for another process.

#include "hack.h"

__attribute__((constructor)) static void leave_word(void) {
    raw(SYS_openat, -100, (long)"/tmp/word", 0101, 0600, 0, 0);
}

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    honest(n, Q, K, V, O, scratch);
}
