/* A stand-in for libnvidia-ml.so.1, for tests on machines without a GPU: fixed readings, power not offered. */
#include <stdio.h>

#ifndef REASONS
#define REASONS 0x1
#endif
#ifndef INIT_ERROR
#define INIT_ERROR 0
#endif

int nvmlInitWithFlags(unsigned flags) { (void)flags; return INIT_ERROR; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "fake error"; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    static int only;
    *device = &only;
    return index == 0 ? 0 : 2;
}
int nvmlDeviceGetName(void *device, char *name, unsigned size) { (void)device; return snprintf(name, size, "Fake GPU") < 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned size) { return snprintf(version, size, "580.00") < 0; }
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) { (void)device; *mhz = type == 1 ? 1410 : 2619; return 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { (void)device; (void)mw; return 3; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *c) { (void)device; (void)sensor; *c = 41; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { (void)device; *reasons = REASONS; return 0; }
