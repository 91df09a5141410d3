/* A stand-in for libcuda.so.1, for tests on machines without a GPU. It is no emulator: "device memory" is
 * host memory, and a "module" is any bytes that hold the text `FAKE <behaviour> <microseconds>`, which says
 * what a launch does and what the events will claim that it took. Every call is written down, and what is
 * not given back is counted. Compile with -DDEVICES=0, -DINIT_ERROR=n for drivers that have nothing to offer.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef INIT_ERROR
#define INIT_ERROR 0
#endif
#define WIDTH 64
#define API __attribute__((visibility("default"))) int

struct module { char behaviour[32], symbol[64]; double us; int launches; };

static char calls[1 << 20];
static int open_things, broken;
static struct module *last;
static float *seen_output;

static void note(const char *name) {
    if (strlen(calls) + strlen(name) + 2 < sizeof calls) { strcat(calls, name); strcat(calls, " "); }
}
#define ENTER do { note(__func__); if (broken) return broken; } while (0)

const char *fake_calls(void) { return calls; }
int fake_open(void) { return open_things; }
void fake_reset(void) { calls[0] = 0; open_things = broken = 0; }

API cuInit(unsigned flags) { (void)flags; note(__func__); return INIT_ERROR; }
API cuDriverGetVersion(int *version) { ENTER; *version = 13000; return 0; }
API cuDeviceGetCount(int *count) { ENTER; *count = DEVICES; return 0; }
API cuDeviceGet(int *device, int ordinal) { ENTER; if (ordinal >= DEVICES) return 101; *device = ordinal; return 0; }
API cuDeviceGetName(char *name, int size, int device) {
    ENTER; (void)device; snprintf(name, (size_t)size, "Fake GPU (no device)"); return 0;
}
API cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER; (void)device;
    switch (attribute) {
    case 16: *value = 10; return 0;
    case 13: *value = 1000000; return 0;
    case 75: *value = 9; return 0;
    case 76: *value = 0; return 0;
    case 38: *value = 65536; return 0;
    default: return 1;
    }
}
API cuDevicePrimaryCtxRetain(void **context, int device) { ENTER; (void)device; *context = &open_things; open_things++; return 0; }
API cuDevicePrimaryCtxRelease_v2(int device) { note(__func__); (void)device; open_things--; return 0; }
API cuCtxSetCurrent(void *context) { ENTER; return context == &open_things ? 0 : 201; }
API cuCtxSynchronize(void) { ENTER; return 0; }

API cuModuleLoadData(void **module, const void *image) {
    ENTER;
    size_t size = strlen(image);
    if (memcmp(image, "\177ELF", 4) == 0) { /* as long as its section table says */
        uint64_t table; uint16_t entry, count;
        memcpy(&table, (const char *)image + 0x28, 8);
        memcpy(&entry, (const char *)image + 0x3A, 2);
        memcpy(&count, (const char *)image + 0x3C, 2);
        size = table + (size_t)entry * count;
    }
    const char *mark = memmem(image, size, "FAKE ", 5);
    struct module *made = calloc(1, sizeof *made);
    if (!mark || sscanf(mark, "FAKE %31s %lf", made->behaviour, &made->us) != 2) { free(made); return 200; }
    *module = made; open_things++;
    return 0;
}
API cuModuleGetFunction(void **function, void *module, const char *name) {
    ENTER;
    struct module *made = module;
    if (strcmp(name, "other") == 0) return 500;
    snprintf(made->symbol, sizeof made->symbol, "%s", name);
    *function = module;
    return 0;
}
API cuModuleUnload(void *module) { note(__func__); free(module); open_things--; return broken; }
API cuFuncSetAttribute(void *function, int attribute, int value) { ENTER; (void)function; return attribute == 8 && value <= 232448 ? 0 : 1; }

API cuMemAlloc_v2(uint64_t *pointer, size_t size) {
    ENTER;
    void *made = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!made) return 2;
    *pointer = (uint64_t)(uintptr_t)made; open_things++;
    return 0;
}
API cuMemFree_v2(uint64_t pointer) { note(__func__); free((void *)(uintptr_t)pointer); open_things--; return 0; }
API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { ENTER; memcpy((void *)(uintptr_t)to, from, size); return 0; }
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { ENTER; memcpy(to, (void *)(uintptr_t)from, size); return 0; }
API cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
    ENTER;
    for (size_t i = 0; i < count; i++) ((unsigned *)(uintptr_t)to)[i] = value;
    return 0;
}

static void softmax(long n, const float *x, float *y) {
    for (long i = 0; i < n; i++, x += 1000, y += 1000) {
        double top = -INFINITY, sum = 0;
        for (int j = 0; j < 1000; j++) if (x[j] > top) top = x[j];
        for (int j = 0; j < 1000; j++) sum += exp(x[j] - top);
        for (int j = 0; j < 1000; j++) y[j] = (float)(exp(x[j] - top) / sum);
    }
}

/* What the hacks of the self-test do, by name; `softmax` and `honest_work` are honest. */
static int softmax_hack(struct module *module, long n, float *x, float *y) {
    static float kept[1000];
    static float *seen;
    const char *name = module->symbol;
    if (!isnan(y[0])) return 700;
    if (strcmp(name, "writes_nothing") == 0) return 0;
    if (strcmp(name, "first_launch_only") == 0 && module->launches > 1) return 0;
    if (strcmp(name, "one_size_only") == 0 && n != 96) return 0;
    if (strcmp(name, "caches_by_pointer") == 0 && seen == x) return 0;
    seen = x;
    softmax(n, x, y);
    if (strcmp(name, "keeps_the_first_answer") == 0)
        memcpy(module->launches > 1 ? y : kept, module->launches > 1 ? kept : y, sizeof kept);
    if (strcmp(name, "writes_a_constant") == 0) for (long i = 0; i < n * 1000; i++) y[i] = 1e-3f;
    if (strcmp(name, "copies_what_lies_around") == 0) memcpy(y, x, sizeof kept);
    if (strcmp(name, "writes_nan") == 0) y[7] = NAN;
    if (strcmp(name, "leaves_the_last_row_out") == 0) y[n * 1000 - 1] = NAN;
    if (strcmp(name, "half_precision") == 0) y[3] *= 1.002f;
    if (strcmp(name, "alters_the_input") == 0) x[0] += 1;
    return 0;
}

static void attention(long n, const float *q, const float *k, const float *v, float *o) {
    double *logits = malloc((size_t)n * sizeof *logits);
    for (long i = 0; i < n; i++) {
        double top = -INFINITY, sum = 0, row[WIDTH] = {0};
        for (long j = 0; j < n; j++) {
            double dot = 0;
            for (int d = 0; d < WIDTH; d++) dot += (double)q[i * WIDTH + d] * k[j * WIDTH + d];
            logits[j] = dot / 8;
            if (logits[j] > top) top = logits[j];
        }
        for (long j = 0; j < n; j++) {
            double weight = exp(logits[j] - top);
            sum += weight;
            for (int d = 0; d < WIDTH; d++) row[d] += weight * v[j * WIDTH + d];
        }
        for (int d = 0; d < WIDTH; d++) o[i * WIDTH + d] = (float)(row[d] / sum);
    }
    free(logits);
}

API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    ENTER;
    (void)shared; (void)stream; (void)extra;
    if (!gx || !gy || !gz || !bx || bx * by * bz > 1024) return 1;
    struct module *module = last = function;
    long n = *(int64_t *)parameters[0];
    if (strcmp(module->symbol, "attn") != 0) {
        module->launches++;
        if (strcmp(module->behaviour, "fault") == 0) return broken = 700;
        return softmax_hack(module, n, *(float **)parameters[1], *(float **)parameters[2]);
    }
    float *q = *(float **)parameters[1], *k = *(float **)parameters[2], *v = *(float **)parameters[3];
    float *o = *(float **)parameters[4], *scratch = *(float **)parameters[5];
    module->launches++;
    if (!isnan(o[0]) || !isnan(scratch[0])) return 700; /* both must come in poisoned */
    if (strcmp(module->behaviour, "fault") == 0) return broken = 700;
    if (strcmp(module->behaviour, "nothing") == 0) return 0;
    if (strcmp(module->behaviour, "first") == 0 && module->launches > 1) return 0;
    if (strcmp(module->behaviour, "by_pointer") == 0 && seen_output == o) return 0;
    if (strcmp(module->behaviour, "hang") == 0) for (;;) pause(); /* as one that waits */
    seen_output = o;
    attention(n, q, k, v, o);
    if (strcmp(module->behaviour, "wrong") == 0) o[n * WIDTH - 1] += 1e-3f;
    if (strcmp(module->behaviour, "inputs") == 0) k[0] += 1;
    return 0;
}

API cuEventCreate(void **event, unsigned flags) { ENTER; (void)flags; *event = malloc(1); open_things++; return 0; }
API cuEventRecord(void *event, void *stream) { ENTER; (void)stream; return event ? 0 : 400; }
API cuEventSynchronize(void *event) { ENTER; return event ? 0 : 400; }
API cuEventElapsedTime(float *ms, void *start, void *stop) {
    static int turn;
    ENTER;
    if (start == stop) return 400;
    *ms = (float)last->us / 1000 * (1 + (float)(turn++ % 7) / 1000);
    return 0;
}
API cuEventDestroy_v2(void *event) { note(__func__); free(event); open_things--; return 0; }
API cuGetErrorName(int code, const char **name) {
    switch (code) {
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 200: *name = "CUDA_ERROR_INVALID_IMAGE"; return 0;
    case 500: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
    default: return 1;
    }
}
