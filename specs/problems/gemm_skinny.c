void gemm_skinny(long n, int m, const float *A, const float *B, float *C) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < 8; j++) {
            float sum = 0.0f;
            for (long k = 0; k < n && j < m; k++)
                sum += A[i * n + k] * B[k * 8 + j];
            C[i * 8 + j] = sum;
        }
}
