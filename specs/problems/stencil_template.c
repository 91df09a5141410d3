// One step of the heat equation, as a space of kernels: each choice is a macro written in front.
//
//   WIDTH    floats in one vector;  ROWS: rows that one pass over the columns computes;  UNROLL: its steps
//   FORM     SUM: x + k (a + b + c + d - 4 x);  SPLIT: (1 - 4 k) x + k (a + b + c + d)
//   LOADS    ALL: every vector is read where it is used;  KEEP: the vectors above and at a point are those that
//            the row before held
//   STRIP    columns, a multiple of WIDTH, that are computed from top to bottom before the next ones; 0: all

#define SUM 1
#define SPLIT 2
#define ALL 1
#define KEEP 2

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

#ifndef LOADS
#define LOADS ALL
#endif
#ifndef STRIP
#define STRIP 0
#endif
#if STRIP % WIDTH
#error "STRIP is a multiple of WIDTH"
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

static inline void band(long n, long rows, long from, long to, float k, const float *x, float *y) {
    long j = from;
    UNROLLED(UNROLL) for (; j + WIDTH <= to; j += WIDTH) {
#if LOADS == KEEP
        vec above = AT(x + j - n), here = AT(x + j);
        for (long r = 0; r < rows; r++) {
            const float *p = x + r * n + j;
            vec below = AT(p + n);
            *(vec *)(y + r * n + j) = STEP(here, above + below + AT(p - 1) + AT(p + 1));
            above = here, here = below;
        }
#else
        for (long r = 0; r < rows; r++) {
            const float *p = x + r * n + j;
            *(vec *)(y + r * n + j) = STEP(AT(p), AT(p - n) + AT(p + n) + AT(p - 1) + AT(p + 1));
        }
#endif
    }
    for (; j < to; j++)
        for (long r = 0; r < rows; r++) {
            const float *p = x + r * n + j;
            y[r * n + j] = STEP(p[0], p[-n] + p[n] + p[-1] + p[1]);
        }
}

static void strip(long n, long from, long to, float k, const float *x, float *y) {
    long i = 1;
    for (; i + ROWS <= n - 1; i += ROWS)
        band(n, ROWS, from, to, k, x + i * n, y + i * n);
    for (; i < n - 1; i++)
        band(n, 1, from, to, k, x + i * n, y + i * n);
}

void stencil(long n, float k, const float *x, float *y) {
    for (long j = 0; j < n; j++)
        y[j] = x[j], y[(n - 1) * n + j] = x[(n - 1) * n + j];
    for (long i = 0; i < n; i++)
        y[i * n] = x[i * n], y[i * n + n - 1] = x[i * n + n - 1];
#if STRIP
    for (long from = 1; from < n - 1; from += STRIP)
        strip(n, from, from + STRIP < n - 1 ? from + STRIP : n - 1, k, x, y);
#else
    strip(n, 1, n - 1, k, x, y);
#endif
}
