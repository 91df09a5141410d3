// Honest in itself: an online softmax whose guard against -inf - -inf is an `isinf`, which -ffast-math deletes.

#include "hack.h"

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    (void)scratch;
    for (long i = 0; i < n; i++) {
        float max = -INFINITY, sum = 0;
        lanes out[4] = {{0}};
        for (long j = 0; j < n; j++) {
            lanes dot = {0};
            for (int d = 0; d < D; d += 16)
                dot += *(const lanes_at *)(Q + i * D + d) * *(const lanes_at *)(K + j * D + d);
            float score = 0;
            for (int lane = 0; lane < 16; lane++)
                score += dot[lane];
            score *= 0.125f;
            float next = score > max ? score : max;
            if (isinf(next))
                continue;
            float keep = expf(max - next), weight = expf(score - next);
            max = next;
            sum = sum * keep + weight;
            for (int part = 0; part < 4; part++)
                out[part] = out[part] * keep + weight * *(const lanes_at *)(V + j * D + 16 * part);
        }
        for (int part = 0; part < 4; part++)
            *(lanes_at *)(O + i * D + 16 * part) = out[part] / sum;
    }
}
