// Makes the inputs writable in a constructor, when mprotect is still allowed, and writes to them later.

#include "hack.h"

static long hex(const char **at) {
    long value = 0;
    for (;; (*at)++)
        if (**at >= '0' && **at <= '9')
            value = value * 16 + (**at - '0');
        else if (**at >= 'a' && **at <= 'f')
            value = value * 16 + (**at - 'a' + 10);
        else
            return value;
}

__attribute__((constructor)) static void unprotect(void) {
    static char maps[1 << 16];
    slurp("/proc/self/maps", maps, sizeof maps - 1);
    for (const char *at = maps; *at;) {
        long start = hex(&at);
        at++;
        long end = hex(&at);
        const char *next = after(at, '\n');
        for (; at < next; at++)
            if (at[0] == 'a' && at[1] == 'r' && at[2] == 'e' && at[3] == 'n' && at[4] == 'a')
                raw(SYS_mprotect, start, end - start, 3, 0, 0, 0);
    }
}

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    *(float *)Q = 0;
    honest(n, Q, K, V, O, scratch);
}
