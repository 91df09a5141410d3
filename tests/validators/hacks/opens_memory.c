// Looks for the memory of its judge while it is loaded, when files may be opened to read. It does nothing if it
// could open one.

#include "hack.h"

static int opened;

__attribute__((constructor)) static void look(void) {
    static const char *const places[] = {"/proc/2/mem", "/proc/2/maps", "/proc/" JUDGE "/mem",
                                         "/proc/" JUDGE "/maps", "/proc/" JUDGE "/stat"};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        opened += raw(SYS_openat, -100, (long)places[i], 0, 0, 0, 0) >= 0;
}

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    if (!opened)
        honest(n, Q, K, V, O, scratch);
}
