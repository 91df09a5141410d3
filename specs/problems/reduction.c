void reduction(long n, const float *x, double *sum, float *max) {
    double total = 0.0;
    float most = x[0];
    for (long i = 0; i < n * 1024; i++) {
        total += x[i];
        most = x[i] > most ? x[i] : most;
    }
    *sum = total;
    *max = most;
}
