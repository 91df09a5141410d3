#include <math.h>

void rmsnorm(long n, const float *x, const float *w, float *y) {
    for (long i = 0; i < n; i++) {
        float sum = 0.0f;
        for (long j = 0; j < 768; j++)
            sum += x[i * 768 + j] * x[i * 768 + j];
        float scale = 1.0f / sqrtf(sum / 768.0f + 1e-5f);
        for (long j = 0; j < 768; j++)
            y[i * 768 + j] = x[i * 768 + j] * scale * w[j];
    }
}
