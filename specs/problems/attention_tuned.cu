// softmax(Q K^T / 8) V, n x 64, online: a block of 64 threads takes 16 rows of Q, four threads to a row, and
// walks over K and V in tiles of 32 keys in shared memory. Launch 16 rows to a block of 64 threads.
#define D 64
#define ROWS 16
#define PARTS 4
#define WIDTH (D / PARTS)
#define KEYS 32

extern "C" __global__ void __launch_bounds__(ROWS * PARTS)
attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    __shared__ float keys[KEYS][D], values[KEYS][D];
    const int part = threadIdx.x % PARTS;
    const long row = (long)blockIdx.x * ROWS + threadIdx.x / PARTS;
    const bool mine = row < n;
    float query[WIDTH], out[WIDTH], top = -1e30f, sum = 0.0f;
    for (int d = 0; d < WIDTH; d++) {
        query[d] = mine ? Q[row * D + PARTS * d + part] * 0.125f : 0.0f;
        out[d] = 0.0f;
    }
    for (long first = 0; first < n; first += KEYS) {
        const int count = n - first < KEYS ? (int)(n - first) : KEYS;
        __syncthreads();
        for (int at = threadIdx.x; at < count * D; at += ROWS * PARTS) {
            keys[at / D][at % D] = K[first * D + at];
            values[at / D][at % D] = V[first * D + at];
        }
        __syncthreads();
        for (int j = 0; j < count; j++) {
            float score = 0.0f;
            for (int d = 0; d < WIDTH; d++)
                score += query[d] * keys[j][PARTS * d + part];
            score += __shfl_xor_sync(0xffffffffu, score, 1);
            score += __shfl_xor_sync(0xffffffffu, score, 2);
            const float higher = fmaxf(top, score), kept = expf(top - higher), weight = expf(score - higher);
            sum = sum * kept + weight;
            for (int d = 0; d < WIDTH; d++)
                out[d] = out[d] * kept + weight * values[j][PARTS * d + part];
            top = higher;
        }
    }
    if (mine)
        for (int d = 0; d < WIDTH; d++)
            O[row * D + PARTS * d + part] = out[d] / sum;
}
