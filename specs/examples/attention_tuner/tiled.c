// softmax(Q K^T / 8) V for heads of width 64, as a space of kernels: every choice is a macro that stands in
// front of this text (the `instantiate` tool writes them), and each has a default below.
//
//   LAYOUT    PACKED: keys transposed into blocks, one key per vector lane; DOT: keys as they lie, lanes along
//             the width and a sum across lanes for every score
//   ORDER     ROWS_FIRST: a block of rows meets all keys; KEYS_FIRST: a tile of keys meets all rows
//   SOFTMAX   FULL: all scores of a row, then one maximum; ONLINE: a running maximum, tile by tile.
//             KEYS_FIRST is ONLINE
//   ROWS      rows of Q in one block;  TILE: keys in one tile;  WIDTH: floats in one vector
//   SCOREVECS vectors of scores (PACKED) or keys (DOT) held in registers for each row of a block
//   UNROLL    steps along the width that are written out;  OUTVECS: vectors of O held for each row of a block
//   EXP       EXPF: the C library's; P5, P7: a polynomial of that degree
//   PRESCALE  1: rows of Q are copied and divided by 8 first; 0: scores are scaled where they are used
//   HEADS     how many heads lie one after the other
//   CAUSAL    1: a row meets the keys up to its own place only
//   THREADS   threads that share the blocks of rows, by OpenMP (-fopenmp); 1: none
//
// Row-major n x 64 floats for each head, 64-byte aligned, any n from 1 to 1024 (512 of several heads); scratch holds 2^20 floats of unknown content.
// A logit may be -inf as long as each row has a finite one: the running maximum starts at -1e30, so that
// -inf - maximum is never -inf + inf. Vectors are GNU vector types, so that no header has to be compiled.

#define PACKED 1
#define DOT 2
#define ROWS_FIRST 1
#define KEYS_FIRST 2
#define FULL 1
#define ONLINE 2
#define EXPF 1
#define P5 5
#define P7 7

#ifndef LAYOUT
#define LAYOUT PACKED
#endif
#ifndef ORDER
#define ORDER ROWS_FIRST
#endif
#ifndef SOFTMAX
#define SOFTMAX FULL
#endif
#ifndef ROWS
#define ROWS 4
#endif
#ifndef TILE
#define TILE 64
#endif
#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef SCOREVECS
#define SCOREVECS 2
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef OUTVECS
#define OUTVECS 2
#endif
#ifndef EXP
#define EXP P5
#endif
#ifndef PRESCALE
#define PRESCALE 1
#endif

#ifndef HEADS
#define HEADS 1
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif
#ifndef THREADS
#define THREADS 1
#endif

#if LAYOUT != PACKED && LAYOUT != DOT
#error "LAYOUT is PACKED or DOT"
#endif
#if ORDER != ROWS_FIRST && ORDER != KEYS_FIRST
#error "ORDER is ROWS_FIRST or KEYS_FIRST"
#endif
#if SOFTMAX != FULL && SOFTMAX != ONLINE
#error "SOFTMAX is FULL or ONLINE"
#endif
#if ORDER == KEYS_FIRST && SOFTMAX == FULL
#error "KEYS_FIRST needs ONLINE"
#endif
#if WIDTH != 4 && WIDTH != 8 && WIDTH != 16
#error "WIDTH is 4, 8 or 16"
#endif
#if EXP != EXPF && EXP != P5 && EXP != P7
#error "EXP is EXPF, P5 or P7"
#endif
#if ROWS < 1 || ROWS > 8 || SCOREVECS < 1 || SCOREVECS > 4
#error "ROWS is 1 to 8, SCOREVECS 1 to 4"
#endif

#if HEADS < 1 || HEADS > 8 || THREADS < 1 || THREADS > 32
#error "HEADS is 1 to 8, THREADS 1 to 32: more do not fit into scratch"
#endif
#if THREADS > 1 && !defined(_OPENMP)
#error "THREADS needs -fopenmp"
#endif

// Keys that one call of the score loop takes.
#if LAYOUT == PACKED
#define GROUP (SCOREVECS * WIDTH)
#define STEPS 64
#else
#define GROUP SCOREVECS
#define STEPS (64 / WIDTH)
#endif

#if TILE < WIDTH || TILE > 256 || TILE % GROUP || TILE % WIDTH
#error "TILE is at most 256 and a multiple of WIDTH and of the keys that one score loop takes"
#endif
#if STEPS % UNROLL
#error "UNROLL divides the steps along the width"
#endif
#if 64 % (OUTVECS * WIDTH)
#error "OUTVECS * WIDTH divides 64"
#endif

#define D 64
#define MAX_KEYS 1024
#define LOWEST (-1e30f)
#define SCALE (PRESCALE ? 1.0f : 0.125f)
#define ALL _Pragma("GCC unroll 64")
#define INLINE static inline __attribute__((always_inline))

#if SOFTMAX == FULL
#define STRIDE (MAX_KEYS + 32)
#else
#define STRIDE (TILE + 16)
#endif

typedef float vec __attribute__((vector_size(WIDTH * 4), may_alias));
typedef int ivec __attribute__((vector_size(WIDTH * 4), may_alias));

// ---- vectors: one instruction where the machine has it, the same meaning in plain GNU C where it has not ----

INLINE vec all(float x) {
#if WIDTH == 16
    return (vec){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif WIDTH == 8
    return (vec){x, x, x, x, x, x, x, x};
#else
    return (vec){x, x, x, x};
#endif
}

INLINE vec load(const float *p) { return *(const vec *)p; }

INLINE void store(float *p, vec x) { *(vec *)p = x; }

INLINE vec multiply_add(vec a, vec b, vec c) {
#if defined(__AVX2__) && defined(__FMA__) && WIDTH == 8
    return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__) && WIDTH == 4
    return __builtin_ia32_vfmaddps(a, b, c);
#else
    return a * b + c;
#endif
}

INLINE vec larger(vec a, vec b) {
#if defined(__AVX512F__) && WIDTH == 16
    return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#elif defined(__AVX2__) && WIDTH == 8
    return __builtin_ia32_maxps256(a, b);
#elif defined(__AVX2__) && WIDTH == 4
    return __builtin_ia32_maxps(a, b);
#else
    ivec mask = a > b;
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
#endif
}

// The nearest integer of x <= 0.
INLINE ivec nearest(vec x) {
#if defined(__AVX512F__) && WIDTH == 16
    return (ivec)__builtin_ia32_cvtps2dq512_mask(x, (ivec){0}, -1, 4);
#elif defined(__AVX2__) && WIDTH == 8
    return (ivec)__builtin_ia32_cvtps2dq256(x);
#elif defined(__AVX2__) && WIDTH == 4
    return (ivec)__builtin_ia32_cvtps2dq(x);
#else
    return __builtin_convertvector(x - 0.5f, ivec);
#endif
}

#if WIDTH == 16
#define HALVES(step) \
    (ivec) { 0 ^ step, 1 ^ step, 2 ^ step, 3 ^ step, 4 ^ step, 5 ^ step, 6 ^ step, 7 ^ step, 8 ^ step, \
        9 ^ step, 10 ^ step, 11 ^ step, 12 ^ step, 13 ^ step, 14 ^ step, 15 ^ step }
#elif WIDTH == 8
#define HALVES(step) \
    (ivec) { 0 ^ step, 1 ^ step, 2 ^ step, 3 ^ step, 4 ^ step, 5 ^ step, 6 ^ step, 7 ^ step }
#else
#define HALVES(step) \
    (ivec) { 0 ^ step, 1 ^ step, 2 ^ step, 3 ^ step }
#endif

INLINE float sum_of(vec x) {
    ALL for (int step = WIDTH / 2; step; step /= 2)
        x += __builtin_shuffle(x, (ivec)HALVES(step));
    return x[0];
}

INLINE float max_of(vec x) {
    ALL for (int step = WIDTH / 2; step; step /= 2)
        x = larger(x, __builtin_shuffle(x, (ivec)HALVES(step)));
    return x[0];
}

// exp of x <= 0. The polynomials cut off at -80, which stands for nothing beside the 1 of the maximum and keeps
// every product clear of denormal numbers.
#if EXP == EXPF
float expf(float);

INLINE vec exp_of(vec x) {
    ALL for (int lane = 0; lane < WIDTH; lane++)
        x[lane] = expf(x[lane]);
    return x;
}
#else
INLINE vec exp_of(vec x) {
    x = larger(x, all(-80.0f));
    ivec power = nearest(x * 1.44269504f);
    vec k = __builtin_convertvector(power, vec);
    vec r = multiply_add(k, all(-0.693359375f), x);
    r = multiply_add(k, all(2.12194440e-4f), r);
#if EXP == P5
    vec p = all(8.3125010e-3f);
    p = multiply_add(p, r, all(4.1890331e-2f));
    p = multiply_add(p, r, all(1.6667116e-1f));
    p = multiply_add(p, r, all(4.9999231e-1f));
#else
    vec p = all(1.9790298e-4f);
    p = multiply_add(p, r, all(1.3944703e-3f));
    p = multiply_add(p, r, all(8.3334977e-3f));
    p = multiply_add(p, r, all(4.1666295e-2f));
    p = multiply_add(p, r, all(1.6666666e-1f));
    p = multiply_add(p, r, all(0.5f));
#endif
    p = multiply_add(p, r * r, r + 1.0f);
    return (vec)((ivec)p + (power << 23));
}
#endif

// ---- the steps -----------------------------------------------------------------------------------------------

#if LAYOUT == PACKED
// Transpose keys first .. first + count (zeros from n on) into blocks of GROUP: out[block][d][key].
INLINE void pack(const float *K, long n, long first, long count, float *out) {
    for (long block = 0; block < count; block += GROUP, out += GROUP * D)
        for (long lane = 0; lane < GROUP; lane++) {
            long key = first + block + lane;
            if (key < n)
                for (long d = 0; d < D; d++)
                    out[d * GROUP + lane] = K[key * D + d];
            else
                for (long d = 0; d < D; d++)
                    out[d * GROUP + lane] = 0.0f;
        }
}
#endif

// Scores of ROWS rows against `count` keys into s; the rest up to a whole vector is LOWEST. `keys` is the packed
// tile, or the first key as it lies.
INLINE void score(const float *const q[ROWS], const float *keys, long count, float *s) {
    for (long j = 0; j < count; j += GROUP) {
        vec sum[ROWS][SCOREVECS];
        ALL for (int r = 0; r < ROWS; r++)
            ALL for (int v = 0; v < SCOREVECS; v++)
                sum[r][v] = all(0.0f);
#if LAYOUT == PACKED
        const float *block = keys + j * D;
#else
        const float *key[SCOREVECS];
        ALL for (int v = 0; v < SCOREVECS; v++)
            key[v] = keys + (j + v < count ? j + v : count - 1) * D;
#endif
        for (long step = 0; step < STEPS; step += UNROLL)
            ALL for (int u = 0; u < UNROLL; u++) {
                vec k[SCOREVECS];
                ALL for (int v = 0; v < SCOREVECS; v++)
#if LAYOUT == PACKED
                    k[v] = load(block + (step + u) * GROUP + v * WIDTH);
#else
                    k[v] = load(key[v] + (step + u) * WIDTH);
#endif
                ALL for (int r = 0; r < ROWS; r++) {
#if LAYOUT == PACKED
                    vec row = all(q[r][step + u]);
#else
                    vec row = load(q[r] + (step + u) * WIDTH);
#endif
                    ALL for (int v = 0; v < SCOREVECS; v++)
                        sum[r][v] = multiply_add(row, k[v], sum[r][v]);
                }
            }
        ALL for (int r = 0; r < ROWS; r++)
            ALL for (int v = 0; v < SCOREVECS; v++)
#if LAYOUT == PACKED
                store(s + r * STRIDE + j + v * WIDTH, sum[r][v]);
#else
                s[r * STRIDE + j + v] = sum_of(sum[r][v]);
#endif
    }
    for (int r = 0; r < ROWS; r++)
        for (long j = count; j % WIDTH; j++)
            s[r * STRIDE + j] = LOWEST;
}

// Take out what no row may see: of row r the keys after `own + r`.
INLINE void mask(float *s, long own, long count) {
#if CAUSAL
    for (long r = 0; r < ROWS; r++)
        for (long j = own + r < -1 ? 0 : own + r + 1; j < count; j++)
            s[r * STRIDE + j] = LOWEST;
#else
    (void)s, (void)own, (void)count;
#endif
}

INLINE float max_score(const float *s, long count, float start) {
    vec max = all(start);
    for (long j = 0; j < count; j += WIDTH)
        max = larger(load(s + j), max);
    return max_of(max);
}

// Turn scores into weights against `max`; gives their sum.
INLINE float weigh(float *s, long count, float max) {
    vec sum = all(0.0f);
    for (long j = 0; j < count; j += WIDTH) {
        vec weight = exp_of((load(s + j) - max) * SCALE);
        store(s + j, weight);
        sum += weight;
    }
    return sum_of(sum);
}

// out[r] += the sum over `count` keys of weight * V, OUTVECS vectors of the width at a time.
INLINE void gather(const float *weights, const float *V, long count, float *out) {
    for (long d = 0; d < D; d += OUTVECS * WIDTH) {
        vec sum[ROWS][OUTVECS];
        ALL for (int r = 0; r < ROWS; r++)
            ALL for (int v = 0; v < OUTVECS; v++)
                sum[r][v] = load(out + r * D + d + v * WIDTH);
        for (long j = 0; j < count; j++) {
            vec value[OUTVECS];
            ALL for (int v = 0; v < OUTVECS; v++)
                value[v] = load(V + j * D + d + v * WIDTH);
            ALL for (int r = 0; r < ROWS; r++) {
                vec weight = all(weights[r * STRIDE + j]);
                ALL for (int v = 0; v < OUTVECS; v++)
                    sum[r][v] = multiply_add(weight, value[v], sum[r][v]);
            }
        }
        ALL for (int r = 0; r < ROWS; r++)
            ALL for (int v = 0; v < OUTVECS; v++)
                store(out + r * D + d + v * WIDTH, sum[r][v]);
    }
}

INLINE void scale_row(float *out, float factor) {
    for (long d = 0; d < D; d += WIDTH)
        store(out + d, load(out + d) * factor);
}

// ---- a block of rows -----------------------------------------------------------------------------------------

// What a block of rows carries from tile to tile.
typedef struct {
    float out[ROWS * D] __attribute__((aligned(64)));
    float max[ROWS], sum[ROWS];
} state;

INLINE void start(state *t) {
    for (long i = 0; i < ROWS * D; i++)
        t->out[i] = 0.0f;
    for (int r = 0; r < ROWS; r++) {
        t->max[r] = LOWEST;
        t->sum[r] = 0.0f;
    }
}

// Point q at the rows from `first` on; rows past the end repeat the last one and are never written out.
INLINE void take_rows(const float *Q, long n, long first, float *copy, const float *q[ROWS]) {
    ALL for (int r = 0; r < ROWS; r++) {
        const float *row = Q + (first + r < n ? first + r : n - 1) * D;
#if PRESCALE
        for (long d = 0; d < D; d += WIDTH)
            store(copy + r * D + d, load(row + d) * 0.125f);
        q[r] = copy + r * D;
#else
        (void)copy;
        q[r] = row;
#endif
    }
}

INLINE void finish(state *t, float *O, long n, long first) {
    for (long r = 0; r < ROWS && first + r < n; r++) {
        scale_row(t->out + r * D, 1.0f / t->sum[r]);
        for (long d = 0; d < D; d += WIDTH)
            store(O + (first + r) * D + d, load(t->out + r * D + d));
    }
}

#if SOFTMAX == ONLINE
// One tile of keys for one block of rows, the first of which lies `own` keys after the tile's first: the sums so
// far are taken down to the new maximum, then added to.
INLINE void meet_tile(
    state *t, const float *const q[ROWS], const float *keys, const float *V, long count, long own, float *s) {
    score(q, keys, count, s);
    mask(s, own, count);
    for (int r = 0; r < ROWS; r++) {
        float max = max_score(s + r * STRIDE, count, t->max[r]);
        if (max > t->max[r]) {
            float factor = exp_of(all((t->max[r] - max) * SCALE))[0];
            scale_row(t->out + r * D, factor);
            t->sum[r] *= factor;
            t->max[r] = max;
        }
        t->sum[r] += weigh(s + r * STRIDE, count, max);
    }
    gather(s, V, count, t->out);
}
#endif

INLINE long at_most(long a, long b) { return a < b ? a : b; }

// How many keys a block of rows from i on meets.
INLINE long keys_of(long n, long i) { return CAUSAL ? at_most(n, i + ROWS) : n; }

#if ORDER == ROWS_FIRST
// The rows of a head from i on against its keys, which are packed where LAYOUT says so.
INLINE void block(long n, long i, const float *Q, const float *keys, const float *V, float *O, float *s) {
    float copy[ROWS * D] __attribute__((aligned(64)));
    const float *q[ROWS];
    long count = keys_of(n, i);
    state t;
    take_rows(Q, n, i, copy, q);
    start(&t);
#if SOFTMAX == ONLINE
    for (long j = 0; j < count; j += TILE)
        meet_tile(&t, q, keys + j * D, V + j * D, at_most(TILE, count - j), i - j, s);
#else
    score(q, keys, count, s);
    mask(s, i, count);
    for (int r = 0; r < ROWS; r++) {
        float max = max_score(s + r * STRIDE, count, LOWEST);
        t.sum[r] = weigh(s + r * STRIDE, count, max);
    }
    for (long j = 0; j < count; j += TILE)
        gather(s + j, V + j * D, at_most(TILE, count - j), t.out);
#endif
    finish(&t, O, n, i);
}
#endif

// What one of `threads` threads does: every `threads`-th block of rows, from its own number on.
INLINE void part(
    long n, const float *Q, const float *K, const float *V, float *O, float *scratch, long thread, long threads) {
    float *s = scratch + thread * ROWS * STRIDE;
    float *keys = scratch + THREADS * ROWS * STRIDE;
    long blocks = (n + ROWS - 1) / ROWS;
#if ORDER == ROWS_FIRST && LAYOUT == PACKED && THREADS > 1
    long groups = (n + GROUP - 1) / GROUP;
    for (long item = thread; item < HEADS * groups; item += threads)
        pack(K + item / groups * n * D, n, item % groups * GROUP, GROUP, keys + item * GROUP * D);
    if (threads > 1) {
#pragma omp barrier
    }
    for (long item = thread; item < HEADS * blocks; item += threads) {
        long head = item / blocks * n * D;
        block(n, item % blocks * ROWS, Q + head, keys + item / blocks * groups * GROUP * D, V + head, O + head, s);
    }
#else
    for (long head = 0; head < HEADS * n * D; head += n * D) {
#if ORDER == ROWS_FIRST
#if LAYOUT == PACKED
        pack(K + head, n, 0, n, keys);
#endif
        for (long b = thread; b < blocks; b += threads)
            block(n, b * ROWS, Q + head, LAYOUT == PACKED ? keys : K + head, V + head, O + head, s);
#else
        float *tile = keys + thread * TILE * D;
        state *states = (state *)(keys + THREADS * TILE * D);
        for (long j = 0; j < n; j += TILE) {
#if LAYOUT == PACKED
            pack(K + head, n, j, at_most(TILE, n - j), tile);
#endif
            for (long b = thread; b < blocks; b += threads) {
                float copy[ROWS * D] __attribute__((aligned(64)));
                const float *q[ROWS];
                long i = b * ROWS, count = at_most(TILE, keys_of(n, i) - j);
                if (count < 1)
                    continue;
                take_rows(Q + head, n, i, copy, q);
                if (j == 0)
                    start(states + b);
                meet_tile(
                    states + b, q, LAYOUT == PACKED ? tile : K + head + j * D, V + head + j * D, count, i - j, s);
            }
        }
        for (long b = thread; b < blocks; b += threads)
            finish(states + b, O + head, n, b * ROWS);
#endif
    }
#endif
}

#if THREADS > 1
#define LEAST 64 // rows for which it pays to wake a thread
int omp_get_thread_num(void);
int omp_get_num_threads(void); // fewer than THREADS where the caller, or OMP_THREAD_LIMIT, gives no more

void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    if (n < LEAST) {
        part(n, Q, K, V, O, scratch, 0, 1);
        return;
    }
#pragma omp parallel num_threads(THREADS)
    part(n, Q, K, V, O, scratch, omp_get_thread_num(), omp_get_num_threads());
}
#else
void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    part(n, Q, K, V, O, scratch, 0, 1);
}
#endif
