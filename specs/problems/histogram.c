#include <stdint.h>

void histogram(long n, const uint8_t *x, int32_t *counts) {
    for (long value = 0; value < 256; value++)
        counts[value] = 0;
    for (long i = 0; i < n * 1024; i++)
        counts[x[i]]++;
}
