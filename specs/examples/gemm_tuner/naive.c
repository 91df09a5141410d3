void gemm(long n, const float *A, const float *B, float *C) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            float sum = 0.0f;
            for (long k = 0; k < n; k++)
                sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}
