void conv2d(long n, const float *x, const float *w, float *y) {
    for (long o = 0; o < 4; o++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                float sum = 0.0f;
                for (long c = 0; c < 4; c++)
                    for (long p = 0; p < 3; p++)
                        for (long q = 0; q < 3; q++) {
                            long row = i + p - 1, column = j + q - 1;
                            if (row >= 0 && row < n && column >= 0 && column < n)
                                sum += w[((o * 4 + c) * 3 + p) * 3 + q] * x[(c * n + row) * n + column];
                        }
                y[(o * n + i) * n + j] = sum;
            }
}
