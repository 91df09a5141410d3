// Dot products of int8 rows, as a space of kernels: each choice is a macro written in front.
//
//   WIDTH    numbers in one vector (not of PLAIN);  ROWS: rows of w that share a vector of x
//   SUMS     sums of each row that are kept side by side: 1, 2, 4;  UNROLL: steps written out
//   PRODUCT  PLAIN: a loop that is left to the compiler, which knows how to multiply and add pairs; NARROW: vectors
//            of 16 bits, where a product still fits; WIDE: vectors of 32 bits

#include <stdint.h>

#define PLAIN 1
#define NARROW 2
#define WIDE 3

#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef SUMS
#define SUMS 1
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

#if PRODUCT == NARROW
typedef halves terms;
#else
typedef words terms;
#endif

#define SPAN (COLUMNS / SUMS)

#if PRODUCT == PLAIN
#define DOTS(name, rows)                                                                        \
    static void name(const int8_t *w, const int8_t *x, int32_t *y) {                            \
        int32_t sums[rows][SUMS] = {{0}};                                                       \
        UNROLLED(UNROLL) for (int j = 0; j < SPAN; j++)                                         \
            for (int r = 0; r < rows; r++)                                                      \
                for (int s = 0; s < SUMS; s++)                                                  \
                    sums[r][s] += w[r * COLUMNS + s * SPAN + j] * x[s * SPAN + j];              \
        for (int r = 0; r < rows; r++) {                                                        \
            y[r] = 0;                                                                           \
            for (int s = 0; s < SUMS; s++)                                                      \
                y[r] += sums[r][s];                                                             \
        }                                                                                       \
    }
#else
#define READ(from) __builtin_convertvector(*(const bytes *)(from), terms)
#define DOTS(name, rows)                                                                        \
    static void name(const int8_t *w, const int8_t *x, int32_t *y) {                            \
        words sums[rows][SUMS] = {{{0}}};                                                       \
        UNROLLED(UNROLL) for (int j = 0; j < COLUMNS; j += SUMS * WIDTH)                        \
            for (int s = 0; s < SUMS; s++) {                                                    \
                terms one = READ(x + j + s * WIDTH);                                            \
                for (int r = 0; r < rows; r++) {                                                \
                    terms other = READ(w + r * COLUMNS + j + s * WIDTH);                        \
                    sums[r][s] += __builtin_convertvector(one * other, words);                  \
                }                                                                               \
            }                                                                                   \
        for (int r = 0; r < rows; r++) {                                                        \
            words sum = sums[r][0];                                                             \
            for (int s = 1; s < SUMS; s++)                                                      \
                sum += sums[r][s];                                                              \
            y[r] = 0;                                                                           \
            for (int lane = 0; lane < WIDTH; lane++)                                            \
                y[r] += sum[lane];                                                              \
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
