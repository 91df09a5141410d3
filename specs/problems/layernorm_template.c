// Rows of 768 less their mean, divided by their deviation, as a space of kernels: each choice is a macro that is
// written in front of this text.
//
//   WIDTH    floats in one vector: a divisor of 32;  SUMS: vectors that are added to, side by side
//   PASSES   3: mean, then squares of what differs from it, then the row; 2: both sums at once, of what differs
//            from the row's first number
//   UNROLL   steps of the last pass that are written out
//   AHEAD    while a row is written, the row so many further on is fetched into the cache; 0: none

#include <math.h>

#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef SUMS
#define SUMS 4
#endif
#ifndef PASSES
#define PASSES 3
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#ifndef AHEAD
#define AHEAD 0
#endif

#define COLUMNS 768
#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)
#define ALL _Pragma("GCC unroll 64")

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static inline __attribute__((always_inline)) float total(const vec *sums) {
    float sum = 0.0f;
    vec all = sums[0];
    ALL for (int s = 1; s < SUMS; s++)
        all += sums[s];
    ALL for (int lane = 0; lane < WIDTH; lane++)
        sum += all[lane];
    return sum;
}

void layernorm(long n, const float *x, const float *w, const float *b, float *y) {
    for (long i = 0; i < n; i++, x += COLUMNS, y += COLUMNS) {
        vec sums[SUMS], squares[SUMS];
        float first = PASSES == 2 ? x[0] : 0.0f;
        ALL for (int s = 0; s < SUMS; s++)
            sums[s] = squares[s] = (vec){0};
        for (int j = 0; j < COLUMNS; j += SUMS * WIDTH)
            ALL for (int s = 0; s < SUMS; s++) {
                vec part = *(const vec *)(x + j + s * WIDTH) - first;
                sums[s] += part;
#if PASSES == 2
                squares[s] += part * part;
#endif
            }
        float off = total(sums) / COLUMNS, mean = off + first;
#if PASSES == 2
        float variance = total(squares) / COLUMNS - off * off;
        variance = variance > 0.0f ? variance : 0.0f;
#else
        for (int j = 0; j < COLUMNS; j += SUMS * WIDTH)
            ALL for (int s = 0; s < SUMS; s++) {
                vec part = *(const vec *)(x + j + s * WIDTH) - mean;
                squares[s] += part * part;
            }
        float variance = total(squares) / COLUMNS;
#endif
        float scale = 1.0f / sqrtf(variance + 1e-5f);
        const float *next = i + AHEAD < n ? x + AHEAD * COLUMNS : x;
        UNROLLED(UNROLL) for (int j = 0; j < COLUMNS; j += WIDTH) {
            if (AHEAD)
                __builtin_prefetch(next + j);
            *(vec *)(y + j) =
                (*(const vec *)(x + j) - mean) * scale * *(const vec *)(w + j) + *(const vec *)(b + j);
        }
    }
}
