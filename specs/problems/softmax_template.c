// Softmax of rows of 1000, as a space of kernels: each choice is a macro that is written in front of this text.
//
//   WIDTH    floats in one vector;  LANES: vectors that are worked on side by side
//   STORE    1: exp of a row is kept in the output and scaled in a third pass; 0: kept in a buffer of the stack
//   EXP      degree of the polynomial: 5 or 6
//
// exp(x) for x <= 0 is 2^k times a polynomial of what is left of x; below -87 it is cut off.

#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef LANES
#define LANES 4
#endif
#ifndef STORE
#define STORE 1
#endif
#ifndef EXP
#define EXP 6
#endif

#define ROW 1000
#define WHOLE (ROW / WIDTH * WIDTH)
#define ALL _Pragma("GCC unroll 64")
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

INLINE vec larger(vec a, vec b) {
    ivec more = a > b;
    return (vec)((more & (ivec)a) | (~more & (ivec)b));
}

INLINE vec exp_of(vec x) {
    x = larger(x, (vec){0} - 87.0f);
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer, whose bits are the lowest of the sum.
    vec shifted = x * 1.44269504f + 12582912.0f;
    vec k = shifted - 12582912.0f;
    vec r = x - k * 0.693359375f + k * 2.12194440e-4f;
#if EXP == 5
    vec p = r * 8.3125010e-3f + 4.1890331e-2f;
    p = p * r + 1.6667116e-1f;
    p = p * r + 4.9999231e-1f;
#else
    vec p = r * 1.3944703e-3f + 8.3334977e-3f;
    p = p * r + 4.1666295e-2f;
    p = p * r + 1.6666666e-1f;
    p = p * r + 0.5f;
#endif
    p = p * r * r + r + 1.0f;
    return (vec)((ivec)p + ((ivec)shifted << 23));
}

INLINE vec at(const float *p) { return *(const vec *)p; }

void softmax(long n, const float *x, float *y) {
#if !STORE
    float kept[WHOLE + WIDTH];
#endif
    for (long i = 0; i < n; i++) {
        const float *row = x + i * ROW;
        float *out = y + i * ROW;
#if STORE
        float *kept = out;
#endif
        vec top[LANES];
        ALL for (int v = 0; v < LANES; v++)
            top[v] = at(row);
        long j = 0;
        for (; j + LANES * WIDTH <= ROW; j += LANES * WIDTH)
            ALL for (int v = 0; v < LANES; v++)
                top[v] = larger(top[v], at(row + j + v * WIDTH));
        for (; j < ROW; j += WIDTH) // the last one overlaps
            top[0] = larger(top[0], at(row + (j < ROW - WIDTH ? j : ROW - WIDTH)));
        float max = row[0];
        ALL for (int v = 1; v < LANES; v++)
            top[0] = larger(top[0], top[v]);
        ALL for (int lane = 0; lane < WIDTH; lane++)
            max = top[0][lane] > max ? top[0][lane] : max;

        vec sums[LANES];
        ALL for (int v = 0; v < LANES; v++)
            sums[v] = (vec){0};
        for (j = 0; j + LANES * WIDTH <= ROW; j += LANES * WIDTH)
            ALL for (int v = 0; v < LANES; v++) {
                vec e = exp_of(at(row + j + v * WIDTH) - max);
                sums[v] += e;
                *(vec *)(kept + j + v * WIDTH) = e;
            }
        for (; j < WHOLE; j += WIDTH) {
            vec e = exp_of(at(row + j) - max);
            sums[0] += e;
            *(vec *)(kept + j) = e;
        }
        float sum = 0.0f;
        ALL for (int v = 1; v < LANES; v++)
            sums[0] += sums[v];
        ALL for (int lane = 0; lane < WIDTH; lane++)
            sum += sums[0][lane];
        vec last = {0};
        for (j = WHOLE; j < ROW; j++)
            last[j - WHOLE] = row[j] - max;
        last = exp_of(last);
        for (j = WHOLE; j < ROW; j++)
            sum += last[j - WHOLE];

        float scale = 1.0f / sum;
        for (j = 0; j < WHOLE; j += WIDTH)
            *(vec *)(out + j) = at(kept + j) * scale;
        for (j = WHOLE; j < ROW; j++)
            out[j] = last[j - WHOLE] * scale;
    }
}
