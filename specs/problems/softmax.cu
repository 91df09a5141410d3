// The softmax of n rows of 1000: one thread for a row. Launch 128 rows to a block.
#define WIDTH 1000

extern "C" __global__ void softmax(long n, const float *x, float *y) {
    long row = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    float top = x[row * WIDTH], sum = 0.0f;
    for (int j = 1; j < WIDTH; j++)
        top = fmaxf(top, x[row * WIDTH + j]);
    for (int j = 0; j < WIDTH; j++)
        sum += expf(x[row * WIDTH + j] - top);
    for (int j = 0; j < WIDTH; j++)
        y[row * WIDTH + j] = expf(x[row * WIDTH + j] - top) / sum;
}
