#include <math.h>

#define WIDTH 1000

// SPAK-EVOLVE-BEGIN helpers
static float largest(const float *row) {
    float max = row[0];
    for (long j = 1; j < WIDTH; j++)
        max = row[j] > max ? row[j] : max;
    return max;
}
// SPAK-EVOLVE-END

void softmax(long n, const float *x, float *y) {
    for (long i = 0; i < n; i++) {
        const float *row = x + i * WIDTH;
        float *out = y + i * WIDTH;
        // SPAK-EVOLVE-BEGIN row
        float max = largest(row), sum = 0.0f;
        for (long j = 0; j < WIDTH; j++) {
            out[j] = expf(row[j] - max);
            sum += out[j];
        }
        for (long j = 0; j < WIDTH; j++)
            out[j] /= sum;
        // SPAK-EVOLVE-END
    }
}
