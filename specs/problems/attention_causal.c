// Causal softmax(Q K^T / 8) V for eight heads of width 64, in plain loops. Each head is n x 64 floats, row-major;
// scratch holds 2^20 floats of unknown content.

#include <math.h>

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    float *score = scratch;
    for (long head = 0; head < 8; head++, Q += n * 64, K += n * 64, V += n * 64, O += n * 64)
        for (long i = 0; i < n; i++) {
            long keys = i + 1;
            float max = -1e30f, sum = 0.0f;
            for (long j = 0; j < keys; j++) {
                float dot = 0.0f;
                for (long d = 0; d < 64; d++)
                    dot += Q[i * 64 + d] * K[j * 64 + d];
                score[j] = dot / 8.0f;
                if (score[j] > max)
                    max = score[j];
            }
            for (long j = 0; j < keys; j++) {
                score[j] = expf(score[j] - max);
                sum += score[j];
            }
            for (long d = 0; d < 64; d++) {
                float out = 0.0f;
                for (long j = 0; j < keys; j++)
                    out += score[j] * V[j * 64 + d];
                O[i * 64 + d] = out / sum;
            }
        }
}
