#include <math.h>

void layernorm(long n, const float *x, const float *w, const float *b, float *y) {
    for (long i = 0; i < n; i++) {
        const float *row = x + i * 768;
        float mean = 0.0f, square = 0.0f;
        for (long j = 0; j < 768; j++)
            mean += row[j] / 768.0f;
        for (long j = 0; j < 768; j++)
            square += (row[j] - mean) * (row[j] - mean) / 768.0f;
        float scale = 1.0f / sqrtf(square + 1e-5f);
        for (long j = 0; j < 768; j++)
            y[i * 768 + j] = (row[j] - mean) * scale * w[j] + b[j];
    }
}
