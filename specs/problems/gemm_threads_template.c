// C = A B for square row-major matrices by several threads; with THREADS 1 it is gemm_template.c, of which measured
// spaces exist. A space of kernels: each choice is a macro that is written in front
// of this text (the `instantiate` tool does that), and each has a default below.
//
//   WIDTH    floats in one vector;  VECTORS: vectors of a row of C held in registers;  ROWS: rows of C held
//   ORDER    DOWN: a strip of columns of C is computed from top to bottom, then the next; ACROSS: a band of rows
//            from left to right, then the next
//   PACK     1: the columns of B that a strip needs are copied together first (DOWN only); 0: they are read where
//            they are
//   UNROLL   steps of the sum that are written out
//   THREADS  threads that share the rows of C, by OpenMP (-fopenmp); 1: none

#define DOWN 1
#define ACROSS 2

#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef VECTORS
#define VECTORS 2
#endif
#ifndef ROWS
#define ROWS 4
#endif
#ifndef ORDER
#define ORDER DOWN
#endif
#ifndef PACK
#define PACK (ORDER == DOWN)
#endif
#if PACK && ORDER != DOWN
#error "PACK needs ORDER DOWN"
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

#ifndef THREADS
#define THREADS 1
#endif
#if THREADS > 1 && !defined(_OPENMP)
#error "THREADS needs -fopenmp"
#endif

#define COLUMNS (WIDTH * VECTORS)
#define MOST 512
#define WORDS(text) _Pragma(#text)
#define UNROLLED(steps) WORDS(GCC unroll steps)

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

#if ORDER == DOWN
static float panels[THREADS][MOST * COLUMNS] __attribute__((aligned(64)));
#endif

#define BLOCK(name, rows)                                                                       \
    static void name(long n, long step, const float *A, const float *B, float *C) {             \
        vec sum[rows][VECTORS] = {{{0}}};                                                       \
        UNROLLED(UNROLL) for (long k = 0; k < n; k++) {                                         \
            for (int r = 0; r < rows; r++)                                                      \
                for (int v = 0; v < VECTORS; v++)                                               \
                    sum[r][v] += A[r * n + k] * *(const vec *)(B + k * step + v * WIDTH);       \
        }                                                                                       \
        for (int r = 0; r < rows; r++)                                                          \
            for (int v = 0; v < VECTORS; v++)                                                   \
                *(vec *)(C + r * n + v * WIDTH) = sum[r][v];                                    \
    }

BLOCK(rows, ROWS)
BLOCK(row, 1)

// Rows first to last of C; `thread` has a panel of its own.
static void some(long n, long first, long last, int thread, const float *A, const float *B, float *C) {
    long whole = n - n % COLUMNS;
    (void)thread;
#if ORDER == DOWN
    for (long j = 0; j < whole; j += COLUMNS) {
        const float *from = B + j;
        long step = n, i = first;
        if (PACK && n <= MOST) {
            float *panel = panels[thread];
            for (long k = 0; k < n; k++)
                for (int v = 0; v < VECTORS; v++)
                    *(vec *)(panel + k * COLUMNS + v * WIDTH) = *(const vec *)(B + k * n + j + v * WIDTH);
            from = panel, step = COLUMNS;
        }
        for (; i + ROWS <= last; i += ROWS)
            rows(n, step, A + i * n, from, C + i * n + j);
        for (; i < last; i++)
            row(n, step, A + i * n, from, C + i * n + j);
    }
#else
    long i = first;
    for (; i + ROWS <= last; i += ROWS)
        for (long j = 0; j < whole; j += COLUMNS)
            rows(n, n, A + i * n, B + j, C + i * n + j);
    for (; i < last; i++)
        for (long j = 0; j < whole; j += COLUMNS)
            row(n, n, A + i * n, B + j, C + i * n + j);
#endif
    for (long i = first; i < last; i++)
        for (long rest = whole; rest < n; rest++) {
            float sum = 0.0f;
            for (long k = 0; k < n; k++)
                sum += A[i * n + k] * B[k * n + rest];
            C[i * n + rest] = sum;
        }
}

#if THREADS > 1
#define LEAST 48 // rows for which it pays to wake a thread
int omp_get_thread_num(void);
int omp_get_num_threads(void); // fewer than THREADS where the caller, or OMP_THREAD_LIMIT, gives no more

void gemm(long n, const float *A, const float *B, float *C) {
    if (n < LEAST) {
        some(n, 0, n, 0, A, B, C);
        return;
    }
    long blocks = (n + ROWS - 1) / ROWS;
#pragma omp parallel num_threads(THREADS)
    {
        int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        long first = blocks * thread / threads * ROWS, last = blocks * (thread + 1) / threads * ROWS;
        some(n, first, last < n ? last : n, thread, A, B, C);
    }
}
#else
void gemm(long n, const float *A, const float *B, float *C) { some(n, 0, n, 0, A, B, C); }
#endif
