// Rows divided by their root mean square, as a space of kernels: each choice is a macro written in front.
//
//   WIDTH    floats in one vector: a divisor of 32;  SUMS: vectors that squares are added to, side by side: 1, 2, 3
//   UNROLL   steps of the second pass that are written out

#include <math.h>

#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef SUMS
#define SUMS 2
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

#define COLUMNS 768
#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

void rmsnorm(long n, const float *x, const float *w, float *y) {
    for (long i = 0; i < n; i++, x += COLUMNS, y += COLUMNS) {
        vec sums[SUMS] = {{0}};
        for (int j = 0; j < COLUMNS; j += SUMS * WIDTH)
            for (int s = 0; s < SUMS; s++) {
                vec part = *(const vec *)(x + j + s * WIDTH);
                sums[s] += part * part;
            }
        float sum = 0.0f;
        for (int s = 0; s < SUMS; s++)
            for (int lane = 0; lane < WIDTH; lane++)
                sum += sums[s][lane];
        float scale = 1.0f / sqrtf(sum / COLUMNS + 1e-5f);
        UNROLLED(UNROLL) for (int j = 0; j < COLUMNS; j += WIDTH)
            *(vec *)(y + j) = *(const vec *)(x + j) * scale * *(const vec *)(w + j);
    }
}
