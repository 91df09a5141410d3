/* A libnvidia-ml.so.1 with two devices, in the shape that nvidia-ml-py calls. The second one gives no power
 * reading and no temperature, as some do. */
#include <stdio.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Load;

static long devices[2] = {0, 1};
enum { OK = 0, NOT_SUPPORTED = 3 };

int nvmlInit_v2(void) { return OK; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the fake"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &devices[index]; return OK; }
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    snprintf(name, length, "Fake %ld", *(long *)device);
    return OK;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%ld", *(long *)device);
    return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    (void)device;
    *memory = (Memory){16ULL << 30, 12ULL << 30, 4ULL << 30};
    return OK;
}
int nvmlDeviceGetUtilizationRates(void *device, Load *load) {
    *load = (Load){*(long *)device ? 0 : 87, 10};
    return OK;
}
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    *celsius = 61;
    return *(long *)device ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetTemperatureV(void *device, void *asked) {
    (void)device, (void)asked;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 250500;
    return *(long *)device ? NOT_SUPPORTED : OK;
}
