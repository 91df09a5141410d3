// What the hostile candidates of these tests share: an honest kernel to hide behind, system calls without the C
// library (an import would be refused before anything runs), and the driver's descriptors.

#include <math.h>
#include <string.h>
#include <sys/syscall.h>

#define D 64

typedef float lanes __attribute__((vector_size(64)));
typedef float lanes_at __attribute__((vector_size(64), aligned(4), may_alias));

// Right, and quick enough that the tests are: one row at a time, 16 lanes along the width.
static void one_row(long n, const float *q, const float *K, const float *V, float *o, float *scratch) {
    float max = -1e30f, sum = 0;
    for (long j = 0; j < n; j++) {
        lanes dot = {0};
        for (int d = 0; d < D; d += 16)
            dot += *(const lanes_at *)(q + d) * *(const lanes_at *)(K + j * D + d);
        float score = 0;
        for (int lane = 0; lane < 16; lane++)
            score += dot[lane];
        scratch[j] = score * 0.125f;
        max = scratch[j] > max ? scratch[j] : max;
    }
    lanes out[4] = {{0}};
    for (long j = 0; j < n; j++) {
        float weight = expf(scratch[j] - max);
        sum += weight;
        for (int part = 0; part < 4; part++)
            out[part] += weight * *(const lanes_at *)(V + j * D + 16 * part);
    }
    for (int part = 0; part < 4; part++)
        *(lanes_at *)(o + 16 * part) = out[part] / sum;
}

static void honest(long n, const float *Q, const float *K, const float *V, float *O, float *scratch) {
    for (long i = 0; i < n; i++)
        one_row(n, Q + i * D, K, V, O + i * D, scratch);
}

#if defined(__x86_64__)
static inline long raw(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#else
static inline long raw(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                  x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#endif

// The whole of a small file.
static inline long slurp(const char *path, char *to, long size) {
    long fd = raw(SYS_openat, -100, (long)path, 0, 0, 0, 0), length = 0, got;
    if (fd < 0)
        return fd;
    while (length < size && (got = raw(SYS_read, fd, (long)(to + length), size - length, 0, 0, 0)) > 0)
        length += got;
    raw(SYS_close, fd, 0, 0, 0, 0, 0);
    return length;
}

static inline const char *after(const char *at, char end) {
    while (*(const volatile char *)at && *at != end)
        at++;
    return *at ? at + 1 : at;
}

// The driver's descriptors, from its own command line: 3 is GO, 4 is DONE.
static inline int descriptor(int which) {
    char line[256] = {0};
    slurp("/proc/self/cmdline", line, sizeof line - 1);
    const char *at = line;
    while (which--)
        at = after(at, 0) + 1;
    int fd = 0;
    while (*at >= '0' && *at <= '9')
        fd = fd * 10 + (*at++ - '0');
    return fd;
}

// What the driver reads for a call; a candidate that knows it can put itself in the driver's place.
struct go { long n, q, k, v, o, scratch, shift; };

static inline void spin(long rounds) {
    for (volatile long i = 0; i < rounds; i++)
        ;
}
