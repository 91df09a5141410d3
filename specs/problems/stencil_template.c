// One step of the heat equation, as a space of kernels: each choice is a macro written in front.
//
//   WIDTH    floats in one vector;  ROWS: rows that one pass over the columns computes;  UNROLL: its steps
//   FORM     SUM: x + k (a + b + c + d - 4 x);  SPLIT: (1 - 4 k) x + k (a + b + c + d)

#define SUM 1
#define SPLIT 2

#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef ROWS
#define ROWS 2
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef FORM
#define FORM SUM
#endif

#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

#if FORM == SUM
#define STEP(at, around) ((at) + k * ((around) - 4.0f * (at)))
#else
#define STEP(at, around) ((1.0f - 4.0f * k) * (at) + k * (around))
#endif
#define AT(p) (*(const vec *)(p))

static void band(long n, long rows, float k, const float *x, float *y) {
    long j = 1;
    UNROLLED(UNROLL) for (; j + WIDTH <= n - 1; j += WIDTH)
        for (long r = 0; r < rows; r++) {
            const float *p = x + r * n + j;
            *(vec *)(y + r * n + j) = STEP(AT(p), AT(p - n) + AT(p + n) + AT(p - 1) + AT(p + 1));
        }
    for (; j < n - 1; j++)
        for (long r = 0; r < rows; r++) {
            const float *p = x + r * n + j;
            y[r * n + j] = STEP(p[0], p[-n] + p[n] + p[-1] + p[1]);
        }
}

void stencil(long n, float k, const float *x, float *y) {
    for (long j = 0; j < n; j++)
        y[j] = x[j], y[(n - 1) * n + j] = x[(n - 1) * n + j];
    for (long i = 0; i < n; i++)
        y[i * n] = x[i * n], y[i * n + n - 1] = x[i * n + n - 1];
    long i = 1;
    for (; i + ROWS <= n - 1; i += ROWS)
        band(n, ROWS, k, x + i * n, y + i * n);
    for (; i < n - 1; i++)
        band(n, 1, k, x + i * n, y + i * n);
}
