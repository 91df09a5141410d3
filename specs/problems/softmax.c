#include <math.h>

void softmax(long n, const float *x, float *y) {
    for (long i = 0; i < n; i++) {
        const float *row = x + i * 1000;
        float max = row[0], sum = 0.0f;
        for (long j = 1; j < 1000; j++)
            max = row[j] > max ? row[j] : max;
        for (long j = 0; j < 1000; j++) {
            y[i * 1000 + j] = expf(row[j] - max);
            sum += y[i * 1000 + j];
        }
        for (long j = 0; j < 1000; j++)
            y[i * 1000 + j] /= sum;
    }
}
