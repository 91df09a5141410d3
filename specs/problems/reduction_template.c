// Sum in double and maximum of n * 1024 floats, as a space of kernels: each choice is a macro that is written in
// front of this text.
//
//   WIDTH    floats in one vector;  LANES: vectors that are worked on side by side

#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef LANES
#define LANES 4
#endif

#define BLOCK 1024
#define ALL _Pragma("GCC unroll 64")

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef double wide __attribute__((vector_size(8 * WIDTH)));

void reduction(long n, const float *x, double *sum, float *max) {
    wide sums[LANES];
    vec top[LANES];
    ALL for (int v = 0; v < LANES; v++) {
        sums[v] = (wide){0};
        top[v] = *(const vec *)x;
    }
    for (long j = 0; j < n * BLOCK; j += LANES * WIDTH)
        ALL for (int v = 0; v < LANES; v++) {
            vec here = *(const vec *)(x + j + v * WIDTH);
            ivec more = here > top[v];
            top[v] = (vec)((more & (ivec)here) | (~more & (ivec)top[v]));
            sums[v] += __builtin_convertvector(here, wide);
        }
    double total = 0.0;
    float most = x[0];
    for (int v = 0; v < LANES; v++)
        for (int lane = 0; lane < WIDTH; lane++) {
            total += sums[v][lane];
            most = top[v][lane] > most ? top[v][lane] : most;
        }
    *sum = total;
    *max = most;
}
