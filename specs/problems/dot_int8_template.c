// Dot products of int8 rows, as a space of kernels: each choice is a macro written in front.
//
//   WIDTH    numbers in one vector;  ROWS: rows of w that share a vector of x;  UNROLL: steps written out
//   PRODUCT  PLAIN: a loop that is left to the compiler, which knows how to multiply and add pairs; NARROW: vectors
//            of 16 bits, where a product still fits

#include <stdint.h>

#define PLAIN 1
#define NARROW 2

#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef PRODUCT
#define PRODUCT PLAIN
#endif

#define COLUMNS 1024
#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)

typedef int8_t bytes __attribute__((vector_size(WIDTH), aligned(1), may_alias));
typedef int16_t halves __attribute__((vector_size(2 * WIDTH)));
typedef int32_t words __attribute__((vector_size(4 * WIDTH)));

#if PRODUCT == PLAIN
#define DOTS(name, rows)                                                                        \
    static void name(const int8_t *w, const int8_t *x, int32_t *y) {                            \
        int32_t sums[rows] = {0};                                                               \
        UNROLLED(UNROLL) for (int j = 0; j < COLUMNS; j++)                                      \
            for (int r = 0; r < rows; r++)                                                      \
                sums[r] += w[r * COLUMNS + j] * x[j];                                           \
        for (int r = 0; r < rows; r++)                                                          \
            y[r] = sums[r];                                                                     \
    }
#else
#define DOTS(name, rows)                                                                        \
    static void name(const int8_t *w, const int8_t *x, int32_t *y) {                            \
        words sums[rows] = {{0}};                                                               \
        UNROLLED(UNROLL) for (int j = 0; j < COLUMNS; j += WIDTH) {                             \
            halves one = __builtin_convertvector(*(const bytes *)(x + j), halves);            \
            for (int r = 0; r < rows; r++) {                                                    \
                halves other = __builtin_convertvector(*(const bytes *)(w + r * COLUMNS + j), halves); \
                sums[r] += __builtin_convertvector(one * other, words);                         \
            }                                                                                   \
        }                                                                                       \
        for (int r = 0; r < rows; r++) {                                                        \
            y[r] = 0;                                                                           \
            for (int lane = 0; lane < WIDTH; lane++)                                            \
                y[r] += sums[r][lane];                                                          \
        }                                                                                       \
    }
#endif

DOTS(several, ROWS)
DOTS(single, 1)

void dot_int8(long n, const int8_t *w, const int8_t *x, int32_t *y) {
    long i = 0;
    for (; i + ROWS <= n; i += ROWS)
        several(w + i * COLUMNS, x, y + i);
    for (; i < n; i++)
        single(w + i * COLUMNS, x, y + i);
}
