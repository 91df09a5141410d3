// n x n times n x m, m at most 8 of 8 columns, as a space of kernels: each choice is a macro that is written in
// front of this text.
//
//   ROWS     rows of A that are worked on side by side, each with a vector of the 8 columns
//   PAIRS    1: a vector of 16 floats holds the columns of two steps of the sum, 0: of one step
//   UNROLL   steps of the sum that are written out

#ifndef ROWS
#define ROWS 8
#endif
#ifndef PAIRS
#define PAIRS 0
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

#define STEP (1 + PAIRS)
#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)
#define ALL _Pragma("GCC unroll 64")

typedef float vec __attribute__((vector_size(32 * STEP), aligned(4), may_alias));
typedef float row8 __attribute__((vector_size(32), aligned(4), may_alias));

static inline __attribute__((always_inline)) vec pair(const float *a) {
#if PAIRS
    float p = a[0], q = a[1];
    return (vec){p, p, p, p, p, p, p, p, q, q, q, q, q, q, q, q};
#else
    float p = a[0];
    return (vec){p, p, p, p, p, p, p, p};
#endif
}

#define BLOCK(name, rows)                                                                          \
    static void name(long n, int m, const float *A, const float *B, float *C) {                    \
        vec sum[rows];                                                                             \
        ALL for (int r = 0; r < rows; r++)                                                         \
            sum[r] = (vec){0};                                                                     \
        long k = 0;                                                                                \
        UNROLLED(UNROLL) for (; k + STEP <= n; k += STEP) {                                        \
            vec b = *(const vec *)(B + k * 8);                                                     \
            ALL for (int r = 0; r < rows; r++)                                                     \
                sum[r] += pair(A + r * n + k) * b;                                                 \
        }                                                                                          \
        ALL for (int r = 0; r < rows; r++) {                                                       \
            row8 whole;                                                                            \
            ALL for (int j = 0; j < 8; j++)                                                        \
                whole[j] = PAIRS ? sum[r][j] + sum[r][(j + 8) % (8 * STEP)] : sum[r][j];           \
            for (long rest = k; rest < n; rest++)                                                  \
                whole += A[r * n + rest] * *(const row8 *)(B + rest * 8);                          \
            for (int j = m; j < 8; j++)                                                            \
                whole[j] = 0.0f;                                                                   \
            *(row8 *)(C + r * 8) = whole;                                                          \
        }                                                                                          \
    }

BLOCK(rows, ROWS)
BLOCK(row, 1)

void gemm_skinny(long n, int m, const float *A, const float *B, float *C) {
    long i = 0;
    for (; i + ROWS <= n; i += ROWS)
        rows(n, m, A + i * n, B, C + i * 8);
    for (; i < n; i++)
        row(n, m, A + i * n, B, C + i * 8);
}
