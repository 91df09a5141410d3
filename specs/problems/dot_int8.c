#include <stdint.h>

void dot_int8(long n, const int8_t *w, const int8_t *x, int32_t *y) {
    for (long i = 0; i < n; i++) {
        int32_t sum = 0;
        for (long j = 0; j < 1024; j++)
            sum += w[i * 1024 + j] * x[j];
        y[i] = sum;
    }
}
