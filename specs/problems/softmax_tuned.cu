// The softmax of n rows of 1000: a block of 256 threads for a row, which it keeps in registers. Launch 1 row to a block.
#define WIDTH 1000
#define THREADS 256
#define EACH ((WIDTH + THREADS - 1) / THREADS)

static __device__ float over_block(float value, bool highest) {
    __shared__ float warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = highest ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
    for (int warp = 1; warp < THREADS / 32; warp++)
        value = highest ? fmaxf(value, warps[warp]) : value + warps[warp];
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS) softmax(long n, const float *x, float *y) {
    const float *row = x + (long)blockIdx.x * WIDTH;
    float held[EACH], top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < EACH; i++) {
        const int j = i * THREADS + threadIdx.x;
        held[i] = j < WIDTH ? row[j] : -INFINITY;
        top = fmaxf(top, held[i]);
    }
    top = over_block(top, true);
    for (int i = 0; i < EACH; i++) {
        held[i] = expf(held[i] - top);
        sum += held[i];
    }
    sum = over_block(sum, false);
    for (int i = 0; i < EACH; i++) {
        const int j = i * THREADS + threadIdx.x;
        if (j < WIDTH)
            y[(long)blockIdx.x * WIDTH + j] = held[i] / sum;
    }
}
