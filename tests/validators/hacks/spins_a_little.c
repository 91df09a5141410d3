// Says done and spins for a moment, about as long as a tick of the kernel's clock.

#define AFTER spin(4000000)
#include "own_loop.h"
